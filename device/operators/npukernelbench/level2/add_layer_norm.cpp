// x = x1 + x2 (+ bias) in float, then (x - mean) * rstd * gamma + beta, mean, rstd and perhaps x.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs < 4 || n_inputs > 5 || n_outputs < 3 || n_outputs > 4 || n_attributes != 2) return 1;
  const Dense gamma(inputs[2]), beta(inputs[3]), bias(inputs[n_inputs == 5 ? 4 : 3]);
  const int64_t n = gamma.size(0);
  const double eps = attributes[0];
  const bool shifted = n_inputs == 5;
  const auto row = [&](const float *const *x, float *const *y, float *sum) {
    for (int64_t i = 0; i < n; ++i) sum[i] = x[0][i] + x[1][i];
    for (int64_t i = 0; shifted && i < n; ++i) sum[i] += bias.data()[i];
    const Moments m = moments_of(sum, n, eps);
    standardise(sum, y[0], n, m, gamma.data(), beta.data());
    y[1][0] = static_cast<float>(m.mean);
    y[2][0] = static_cast<float>(m.rstd);
  };
  if (n_outputs == 4)
    return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0], &outputs[1], &outputs[2], &outputs[3]},
                     [&](const float *const *x, float *const *y, int64_t) { row(x, y, y[3]); });
  return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0], &outputs[1], &outputs[2]},
                   [&](const float *const *x, float *const *y, int64_t) { row(x, y, y[0]); });
}
