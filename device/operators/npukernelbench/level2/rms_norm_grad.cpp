// Gradients of a norm about zero from given statistics.
#include "sagebook_kernel.h"
#include "../../common/norm_grads.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 2) return 1;
  const Dense gamma(inputs[3]);
  const int64_t n = gamma.size(0);
  const auto parts = wide_rows_with({&inputs[0], &inputs[1], &inputs[2]}, {&outputs[0]}, PARTS, sums_of(n),
                                    [&](const float *const *x, float *const *y, int64_t, Sums &own) {
                                      const float rstd = x[2][0];
                                      float *s = own.scaled.data();
                                      for (int64_t i = 0; i < n; ++i) s[i] = x[1][i] * rstd;
                                      norm_grad_row(x[0], s, y[0], n, rstd, gamma.data(), false, own);
                                    });
  write_sums(parts, &Sums::gamma, outputs[1]);
  return 0;
}
