// The first smallest |x|.
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/vector.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 1 || n_attributes != 2) return 1;
  const int64_t n = static_cast<int64_t>(attributes[0]);
  const int64_t step = static_cast<int64_t>(attributes[1]) * inputs[0].strides[0];
  const auto *x = static_cast<const float *>(inputs[0].data);
  const int64_t at = best_of_vector<float>(
      x, n, step, [](float v) { return std::fabs(v); }, [](float a, float b) { return a < b; });
  *static_cast<int32_t *>(outputs[0].data) = static_cast<int32_t>(at + 1);
  return 0;
}
