// x * sigmoid(1.702 x) as one quotient: an infinite exponential gives 0.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"
#include "../../common/functions.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(inputs, outputs[0], [](float x) { return x / (1.0f + exp_of(-1.702f * x)); });
  });
}
