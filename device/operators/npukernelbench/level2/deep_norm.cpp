// a = alpha * x + gx in float, then mean, rstd and (a - mean) * rstd * gamma + beta; beta comes before gamma.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 4 || n_outputs != 3 || n_attributes != 2) return 1;
  const Dense beta(inputs[2]), gamma(inputs[3]);
  const int64_t n = gamma.size(0);
  const float alpha = static_cast<float>(attributes[0]);
  const double eps = attributes[1];
  return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0], &outputs[1], &outputs[2]},
                   [&](const float *const *x, float *const *y, int64_t) {
                     for (int64_t i = 0; i < n; ++i) y[2][i] = alpha * x[0][i] + x[1][i];
                     const Moments m = moments_of(y[2], n, eps);
                     standardise(y[2], y[2], n, m, gamma.data(), beta.data());
                     y[0][0] = static_cast<float>(m.mean);
                     y[1][0] = static_cast<float>(m.rstd);
                   });
}
