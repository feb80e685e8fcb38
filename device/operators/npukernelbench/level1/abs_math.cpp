// |x| of any type; the modulus of complex numbers in double, which neither overflows nor loses digits.
// flags: -fno-math-errno
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/blocks.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  if (inputs[0].dtype == SB_COMPLEX64)
    return map_blocks<complex, float, 1>(inputs, outputs[0], [](complex x) {
      const double re = x.re, im = x.im;
      return static_cast<float>(std::sqrt(re * re + im * im));
    });
  const int done = with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(inputs, outputs[0], [](float x) { return std::fabs(x); });
  });
  if (done != UNKNOWN_DTYPE) return done;
  if (inputs[0].dtype == SB_INT32)
    return map_blocks<int32_t, int32_t, 1>(inputs, outputs[0], [](int32_t x) { return x < 0 ? -x : x; });
  if (inputs[0].dtype == SB_INT64)
    return map_blocks<int64_t, int64_t, 1>(inputs, outputs[0], [](int64_t x) { return x < 0 ? -x : x; });
  return UNKNOWN_DTYPE;
}
