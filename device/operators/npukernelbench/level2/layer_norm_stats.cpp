// (x - mean) * rstd * gamma + beta, mean and rstd; without parameters gamma is 1 and beta 0.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if ((n_inputs != 1 && n_inputs != 3) || n_outputs != 3 || n_attributes != 2) return 1;
  const int64_t n = inputs[0].shape[inputs[0].ndim - 1];
  Dense gamma({n}), beta({n});
  std::fill_n(gamma.data(), n, 1.0f);
  if (n_inputs == 3) {
    const Dense given(inputs[1]), shift(inputs[2]);
    std::copy_n(given.data(), n, gamma.data());
    std::copy_n(shift.data(), n, beta.data());
  }
  const double eps = attributes[0];
  return wide_rows({&inputs[0]}, {&outputs[0], &outputs[1], &outputs[2]},
                   [&](const float *const *x, float *const *y, int64_t) {
                     const Moments m = moments_of(x[0], n, eps);
                     standardise(x[0], y[0], n, m, gamma.data(), beta.data());
                     y[1][0] = static_cast<float>(m.mean);
                     y[2][0] = static_cast<float>(m.rstd);
                   });
}
