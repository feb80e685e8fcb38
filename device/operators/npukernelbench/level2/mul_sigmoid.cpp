// (s < t2 ? s : 2 s) * x2 * t3, s = sigmoid(t1 * x1); x1 seen in the shape of the output.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 3) return 1;
  const float t1 = static_cast<float>(attributes[0]), t2 = static_cast<float>(attributes[1]);
  const float t3 = static_cast<float>(attributes[2]);
  sb_tensor x[] = {inputs[0], inputs[1]};
  const int64_t strides[] = {x[0].strides[0], x[0].strides[1] * x[1].shape[2], x[0].strides[1]};
  x[0].ndim = 3, x[0].shape = outputs[0].shape, x[0].strides = strides;
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 2>(x, outputs[0], [=](float x1, float x2) {
      const float s = sigmoid_of(t1 * x1);
      return (s < t2 ? s : 2.0f * s) * x2 * t3;
    });
  });
}
