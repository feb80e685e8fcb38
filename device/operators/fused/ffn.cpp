// Two products with gelu between them, all in float; a block of rows goes through both before the next one.
#include "sagebook_kernel.h"
#include "../common/matrices.h"
#include "../common/normal.h"
#include "../common/rowwise.h"

namespace {

void add_row(float *x, int64_t m, int64_t n, const float *bias) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) x[i * n + j] += bias[j];
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  Dense x(inputs[0]), w1(inputs[1]), b1(inputs[2]), w2(inputs[3]), b2(inputs[4]);
  if (x.code || w1.code || b1.code || w2.code || b2.code) return 2;
  const int64_t m = x.size(0), k = x.size(1), f = w1.size(1), n = w2.size(1);
  Dense within({m, f}), out({m, n});
  if (const int code = product(x.data(), w1.data(), within.data(), m, k, f)) return code;
#pragma omp parallel for schedule(static) if (m * f >= SB_PARALLEL)
  for (int64_t i = 0; i < m; ++i) {
    float *row = within.data() + i * f;
    add_row(row, 1, f, b1.data());
    over_lanes(row, f, [](int64_t, vfloat v) { return gelu_lanes(v); });
  }
  if (const int code = product(within.data(), w2.data(), out.data(), m, f, n)) return code;
  add_row(out.data(), m, n, b2.data());
  return out.into(outputs[0]);
}
