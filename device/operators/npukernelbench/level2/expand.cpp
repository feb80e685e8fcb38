// Copies along a new first axis, which the input does not have.
#include "sagebook_kernel.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  return n_inputs != 1 || n_outputs != 1 ? 1 : copy_tensor(inputs[0], outputs[0]);
}
