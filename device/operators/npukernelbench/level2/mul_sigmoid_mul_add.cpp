// sigmoid(x * a) * b + c with three numbers.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/wide_rows.h"
#include "../../common/blocks.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 1) return 1;
  const float a = floats_of(inputs[1])[0], b = floats_of(inputs[2])[0], c = floats_of(inputs[3])[0];
  return with_float(inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(inputs, outputs[0], [=](float x) { return sigmoid_of(x * a) * b + c; });
  });
}
