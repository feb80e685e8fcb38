// Finite or not by the exponent bits, which no compiler flag takes away.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  if (inputs[0].dtype == SB_FLOAT16)
    return map_blocks<uint16_t, uint8_t, 1>(inputs, outputs[0],
                                            [](uint16_t x) -> uint8_t { return (x & 0x7c00) != 0x7c00; });
  if (inputs[0].dtype == SB_FLOAT32)
    return map_blocks<uint32_t, uint8_t, 1>(inputs, outputs[0],
                                            [](uint32_t x) -> uint8_t { return (x & 0x7f800000u) != 0x7f800000u; });
  return UNKNOWN_DTYPE;
}
