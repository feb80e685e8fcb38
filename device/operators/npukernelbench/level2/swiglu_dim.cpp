// a * sigmoid(a) * b as one quotient; the halves are views of the input.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 1 || n_attributes != 1) return 1;
  const int64_t axis = axis_of(inputs[0], attributes[0]), half_size = inputs[0].shape[axis] / 2;
  const Slice a(inputs[0], axis, 0, half_size), b(inputs[0], axis, half_size, half_size);
  const sb_tensor x[] = {*a, *b};
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 2>(x, outputs[0], [](float a, float b) { return a / (1.0f + exp_of(-a)) * b; });
  });
}
