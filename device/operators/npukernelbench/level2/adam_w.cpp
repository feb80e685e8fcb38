// One step of AdamW row by row: all moments and the parameter in one pass over memory.
// flags: -fno-math-errno
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs < 4 || n_inputs > 5 || n_outputs != n_inputs - 1 || n_attributes != 8) return 1;
  const double lr = attributes[0], step = attributes[7], most_by = 1.0 - std::pow(attributes[2], step);
  const float beta1 = static_cast<float>(attributes[1]), beta2 = static_cast<float>(attributes[2]);
  const float one = static_cast<float>(1.0 - attributes[1]), two = static_cast<float>(1.0 - attributes[2]);
  const float decay = static_cast<float>(1.0 - lr * attributes[3]), eps = static_cast<float>(attributes[4]);
  const float sign = attributes[6] != 0 ? -1.0f : 1.0f;
  const float rate = static_cast<float>(lr / (1.0 - std::pow(attributes[1], step)));
  const float by = static_cast<float>(1.0 / most_by);
  const int64_t n = WideRow(inputs[0]).columns();
  const auto row = [=](const float *const *x, float *const *y, const float *most, float *largest) {
    for (int64_t i = 0; i < n; ++i) {
      const float g = sign * x[3][i], m = beta1 * x[1][i] + one * g, v = beta2 * x[2][i] + two * g * g;
      const float top = v > most[i] ? v : most[i];
      y[0][i] = x[0][i] * decay - rate * m / (std::sqrt(top * by) + eps);
      y[1][i] = m;
      y[2][i] = v;
      largest[i] = top;
    }
  };
  if (n_inputs == 5)
    return wide_rows({&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]},
                     {&outputs[0], &outputs[1], &outputs[2], &outputs[3]},
                     [=](const float *const *x, float *const *y, int64_t) { row(x, y, x[4], y[3]); });
  const std::vector<float> zeros(n);
  const float *nothing = zeros.data();
  return wide_rows({&inputs[0], &inputs[1], &inputs[2], &inputs[3]}, {&outputs[0], &outputs[1], &outputs[2]},
                   [=](const float *const *x, float *const *y, int64_t) { row(x, y, nothing, y[2]); });
}
