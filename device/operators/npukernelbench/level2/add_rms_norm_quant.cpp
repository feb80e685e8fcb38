// x = x1 + x2 in float, its norm, and that as bytes.
#include "sagebook_kernel.h"
#include "../../common/norms.h"
#include "../../common/quantise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 5 || n_outputs != 2 || n_attributes != 2) return 1;
  const std::vector<float> gamma = floats_of(inputs[2]), scale = floats_of(inputs[3]), zero = floats_of(inputs[4]);
  const int64_t n = WideRow(inputs[0]).columns();
  const double eps = attributes[0];
  const bool divide = attributes[1] != 0;
  return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0], &outputs[1]},
                   [&](const float *const *x, float *const *y, int64_t) {
                     for (int64_t i = 0; i < n; ++i) y[1][i] = x[0][i] + x[1][i];
                     scaled_row(y[1], y[0], n, rstd_about_zero(y[1], n, eps), gamma.data());
                     for (int64_t i = 0; i < n; ++i)
                       y[0][i] = to_byte((divide ? y[0][i] / scale[i] : y[0][i] * scale[i]) + zero[i]);
                   });
}
