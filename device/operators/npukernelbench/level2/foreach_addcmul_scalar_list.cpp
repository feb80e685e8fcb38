// x + s * a * b with a number s for each tensor; int32 in int32.
#include "sagebook_kernel.h"
#include "../../common/lists.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 * n_outputs + 1) return 1;
  const sb_tensor &scalars = inputs[3 * n_outputs];
  if (inputs[0].dtype == SB_INT32)
    return map_lists<int32_t, 3>(inputs, outputs, n_outputs, [&](int64_t i) {
      const int32_t s = scalar_of<int32_t>(scalars, i);
      return [s](int32_t x, int32_t a, int32_t b) { return x + s * a * b; };
    });
  return map_float_lists<3>(inputs, n_inputs, outputs, n_outputs, 1, [&](int64_t i) {
    const float s = scalar_of<float>(scalars, i);
    return [s](float x, float a, float b) { return x + s * a * b; };
  });
}
