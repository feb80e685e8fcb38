// x + weight * (y - x).
#include "sagebook_kernel.h"
#include "../../common/lists.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_attributes != 1) return 1;
  const float weight = static_cast<float>(attributes[0]);
  return map_float_lists<2>(inputs, n_inputs, outputs, n_outputs, 0, [=](int64_t) {
    return [weight](float x, float y) { return x + weight * (y - x); };
  });
}
