// Gradients of both halves, each written into its half of the output.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 1) return 1;
  const int64_t axis = axis_of(inputs[1], attributes[0]), half_size = inputs[1].shape[axis] / 2;
  const Slice a(inputs[1], axis, 0, half_size), b(inputs[1], axis, half_size, half_size);
  const Slice by_a(outputs[0], axis, 0, half_size), by_b(outputs[0], axis, half_size, half_size);
  const sb_tensor x[] = {inputs[0], *a, *b};
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int code = map_blocks<T, T, 3>(x, *by_a, [](float dy, float a, float b) {
      const float s = sigmoid_of(a), rest = sigmoid_of(-a);
      return dy * b * s * (1.0f + a * rest);
    });
    if (code != 0) return code;
    return map_blocks<T, T, 2>(x, *by_b, [](float dy, float a) { return dy * (a / (1.0f + exp_of(-a))); });
  });
}
