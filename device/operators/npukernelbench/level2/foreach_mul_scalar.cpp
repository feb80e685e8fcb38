// x * scalar; int32 by a whole scalar, in int32.
#include "sagebook_kernel.h"
#include "../../common/lists.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != n_outputs || n_attributes != 1) return 1;
  const float scalar = static_cast<float>(attributes[0]);
  const int32_t whole = static_cast<int32_t>(attributes[0]);
  if (inputs[0].dtype == SB_INT32)
    return map_lists<int32_t, 1>(inputs, outputs, n_outputs, [=](int64_t) {
      return [whole](int32_t x) { return x * whole; };
    });
  return map_float_lists<1>(inputs, n_inputs, outputs, n_outputs, 0, [=](int64_t) {
    return [scalar](float x) { return x * scalar; };
  });
}
