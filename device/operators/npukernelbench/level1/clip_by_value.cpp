// min(max(x, low), high), in the type of the elements; the limits broadcast.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1) return 1;
  return with_number(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 3>(inputs, outputs[0], [](auto x, auto low, auto high) {
      const auto raised = x < low ? low : x;
      return raised > high ? high : raised;
    });
  });
}
