// x = x1 + x2 in float, then x * rstd * gamma, rstd and x.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 3 || n_attributes != 1) return 1;
  const Dense gamma(inputs[2]);
  const int64_t n = gamma.size(0);
  const double eps = attributes[0];
  return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0], &outputs[1], &outputs[2]},
                   [&](const float *const *x, float *const *y, int64_t) {
                     for (int64_t i = 0; i < n; ++i) y[2][i] = x[0][i] + x[1][i];
                     const double rstd = rstd_about_zero(y[2], n, eps);
                     scaled_row(y[2], y[0], n, rstd, gamma.data());
                     y[1][0] = static_cast<float>(rstd);
                   });
}
