// From one element type to another: fractions cut off, whole numbers wrapped, anything but 0 true.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"

namespace {

template <class T, class U>
int cast(const sb_tensor *x, const sb_tensor &y) {
  using R = typename Computed<U>::type;
  return map_blocks<T, U, 1>(x, y, [](auto v) { return static_cast<R>(v); });
}

constexpr int pair_of(int from, int to) { return 16 * from + to; }

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  const sb_tensor &y = outputs[0];
  switch (pair_of(inputs[0].dtype, y.dtype)) {
    case pair_of(SB_FLOAT16, SB_FLOAT32): return cast<half, float>(inputs, y);
    case pair_of(SB_BFLOAT16, SB_FLOAT32): return cast<bfloat, float>(inputs, y);
    case pair_of(SB_FLOAT32, SB_FLOAT16): return cast<float, half>(inputs, y);
    case pair_of(SB_FLOAT32, SB_BFLOAT16): return cast<float, bfloat>(inputs, y);
    case pair_of(SB_FLOAT32, SB_INT32): return cast<float, int32_t>(inputs, y);
    case pair_of(SB_INT32, SB_INT8): return cast<int32_t, int8_t>(inputs, y);
    case pair_of(SB_BOOL, SB_INT8): return cast<int8_t, int8_t>(inputs, y);
    case pair_of(SB_INT8, SB_BOOL):
      return map_blocks<int8_t, uint8_t, 1>(inputs, y, [](int8_t v) -> uint8_t { return v != 0; });
    default: return UNKNOWN_DTYPE;
  }
}
