// Sum, norm and steps of a row while it is in the cache; the norm is that of the sum before it is rounded.
#include "sagebook_kernel.h"
#include "../common/rowwise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 3 || n_attributes != 1) return 1;
  Dense x(inputs[0]), residual(inputs[1]), gamma(inputs[2]);
  if (x.code || residual.code || gamma.code) return 2;
  const int64_t m = x.size(0), n = x.size(1);
  Dense normed({m, n}), steps({m});
#pragma omp parallel for schedule(static) if (m * n >= SB_PARALLEL)
  for (int64_t i = 0; i < m; ++i) {
    float *sum = x.data() + i * n, *out = normed.data() + i * n;
    const float *more = residual.data() + i * n;
    double lanes[8] = {};
    for (int64_t j = 0; j < n; ++j) sum[j] += more[j];
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
      for (int l = 0; l < 8; ++l) lanes[l] += static_cast<double>(sum[j + l]) * sum[j + l];
    for (; j < n; ++j) lanes[0] += static_cast<double>(sum[j]) * sum[j];
    double squares = 0;
    for (double lane : lanes) squares += lane;
    const float factor = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + attributes[0]));
    for (j = 0; j < n; ++j) out[j] = sum[j] * factor * gamma.data()[j];
    steps.data()[i] = into_steps(out, n);
  }
  if (const int code = into_bytes(normed, outputs[0])) return code;
  if (const int code = steps.into(outputs[1])) return code;
  return x.into(outputs[2]);
}
