// The vector product from three slices of each input; half formats in float, whole numbers as they are.
#include "sagebook_kernel.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 1) return 1;
  const int64_t axis = axis_of(inputs[0], attributes[0]);
  if (axis < 0 || axis >= inputs[0].ndim || inputs[0].shape[axis] != 3) return 2;
  return with_number(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int k = 0; k < 3; ++k) {
      const int p = (k + 1) % 3, q = (k + 2) % 3;
      const Slice ap(inputs[0], axis, p, 1), aq(inputs[0], axis, q, 1), bp(inputs[1], axis, p, 1),
          bq(inputs[1], axis, q, 1), out(outputs[0], axis, k, 1);
      const sb_tensor x[] = {*ap, *bq, *aq, *bp};
      using C = typename Computed<T>::type;
      const int code =
          map_blocks<T, T, 4>(x, *out, [](C a, C b, C c, C d) { return static_cast<C>(a * b - c * d); });
      if (code != 0) return code;
    }
    return 0;
  });
}
