// value * gelu(gate), and gelu(gate): the gate's function is cheap enough to take twice.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 2 || n_attributes != 2) return 1;
  const int64_t axis = inputs[0].ndim - 1, half_size = inputs[0].shape[axis] / 2;
  const bool by_tanh = attributes[0] != 0, left = attributes[1] != 0;
  const Slice first(inputs[0], axis, 0, half_size), second(inputs[0], axis, half_size, half_size);
  const sb_tensor x[] = {left ? *first : *second, left ? *second : *first};
  const auto with_gelu = [&](auto gelu) {
    return with_float(inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int code =
          map_blocks<T, T, 2>(x, outputs[0], [=](float gate, float value) { return value * gelu(gate); });
      return code != 0 ? code : map_blocks<T, T, 1>(x, outputs[1], gelu);
    });
  };
  return by_tanh ? with_gelu([](float g) { return gelu_tanh_of(g); })
                 : with_gelu([](float g) { return gelu_erf_of(g); });
}
