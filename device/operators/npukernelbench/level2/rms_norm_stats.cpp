// x * rstd * gamma and rstd, the mean square of a row in double.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 2 || n_attributes != 1) return 1;
  const Dense gamma(inputs[1]);
  const int64_t n = gamma.size(0);
  const double eps = attributes[0];
  return wide_rows({&inputs[0]}, {&outputs[0], &outputs[1]}, [&](const float *const *x, float *const *y, int64_t) {
    const double rstd = rstd_about_zero(x[0], n, eps);
    scaled_row(x[0], y[0], n, rstd, gamma.data());
    y[1][0] = static_cast<float>(rstd);
  });
}
