// cos(x): the nearest odd multiple of pi / 2 is taken off in three parts, an odd polynomial gives the rest.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"

namespace {

// sin(r) for |r| <= pi / 2; cos(x) = +-sin(r) with r = x - (n + 1/2) pi, which keeps the digits near the zeros.
inline float near_cos(float x) {
  const float t = x * 0.318309886183790671538f - 0.5f + 12582912.0f;
  const uint32_t n = as_bits(t);
  const float h = t - 12582912.0f + 0.5f;  // n + 1/2, exact
  // pi in parts of 8, 11 and 24 bits: the first two products are exact for angles below 10^4.
  float r = x - h * 3.140625f;
  r = r - h * 9.67502593994140625e-4f;
  r = r - h * 1.509957990978376432e-7f;
  const float z = r * r;
  float p = 2.6083159809786593541503e-6f;
  p = p * z - 1.981069071916863322258e-4f;
  p = p * z + 8.33307858556509017944336e-3f;
  p = p * z - 1.66666597127914428710938e-1f;
  const float s = p * z * r + r;
  // cos(r + (n + 1/2) pi) is -sin(r) for even n.
  return as_float(as_bits(s) ^ ((~n & 1u) << 31));
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(inputs, outputs[0], [](float x) { return near_cos(x); });
  });
}
