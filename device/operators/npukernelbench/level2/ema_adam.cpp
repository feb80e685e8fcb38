// One step of Adam and of the average of its parameters, row by row, in one pass over memory.
// flags: -fno-math-errno
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 6 || n_outputs != 4 || n_attributes != 8) return 1;
  const double step = static_cast<double>(*static_cast<const int64_t *>(inputs[5].data));
  const bool decoupled = attributes[5] != 0, corrected = attributes[6] != 0;
  const float lr = static_cast<float>(attributes[0]), eps = static_cast<float>(attributes[4]);
  const float keep = static_cast<float>(attributes[1]), take = static_cast<float>(1.0 - attributes[1]);
  const float beta1 = static_cast<float>(attributes[2]), one = static_cast<float>(1.0 - attributes[2]);
  const float beta2 = static_cast<float>(attributes[3]), two = static_cast<float>(1.0 - attributes[3]);
  const float decay = static_cast<float>(attributes[7]);
  const float first = corrected ? static_cast<float>(1.0 / (1.0 - std::pow(attributes[2], step))) : 1.0f;
  const float second = corrected ? static_cast<float>(1.0 / (1.0 - std::pow(attributes[3], step))) : 1.0f;
  const float coupled = decoupled ? 0.0f : decay, apart = decoupled ? decay : 0.0f;
  const int64_t n = WideRow(inputs[0]).columns();
  return wide_rows({&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4]},
                   {&outputs[0], &outputs[1], &outputs[2], &outputs[3]},
                   [=](const float *const *x, float *const *y, int64_t) {
                     for (int64_t i = 0; i < n; ++i) {
                       const float var = x[1][i], g = x[0][i] + coupled * var;
                       const float m = beta1 * x[2][i] + one * g, v = beta2 * x[3][i] + two * g * g;
                       const float update = m * first / (std::sqrt(v * second) + eps) + apart * var;
                       y[0][i] = var - lr * update;
                       y[1][i] = m;
                       y[2][i] = v;
                       y[3][i] = keep * x[4][i] + take * y[0][i];
                     }
                   });
}
