// Grouped int8 products, scaled, gated and put into steps row by row while the row is in the cache.
#include "sagebook_kernel.h"
#include "../common/groups.h"
#include "../common/rowwise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 2) return 1;
  const int64_t m = inputs[0].shape[0], n = inputs[1].shape[2] / 2;
  Dense w_scale(inputs[2]), x_scale(inputs[3]), sums({m, 2 * n}), gated({m, n}), steps({m});
  if (w_scale.code || x_scale.code) return 2;
  if (const int code = products_by_rows(inputs[0], inputs[1], inputs[4], sums.data())) return code;
  std::vector<int64_t> group(m);
  int64_t begin = 0;
  for (int64_t g = 0; g < inputs[4].shape[0]; ++g)
    for (; begin < end_of(inputs[4], g); ++begin) group[begin] = g;
#pragma omp parallel for schedule(static) if (m * n >= SB_PARALLEL)
  for (int64_t i = 0; i < m; ++i) {
    const float *columns = w_scale.data() + group[i] * 2 * n, row = x_scale.data()[i];
    float *sum = sums.data() + i * 2 * n, *out = gated.data() + i * n;
    for (int64_t j = 0; j < 2 * n; ++j) sum[j] = sum[j] * columns[j] * row;
    std::memcpy(out, sum, sizeof(float) * n);
    over_lanes(out, n, [](int64_t, vfloat v) { return v * sigmoid_lanes(v); });
    for (int64_t j = 0; j < n; ++j) out[j] *= sum[n + j];
    steps.data()[i] = into_steps(out, n);
  }
  if (const int code = into_bytes(gated, outputs[0])) return code;
  return steps.into(outputs[1]);
}
