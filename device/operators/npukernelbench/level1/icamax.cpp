// The first largest |re| + |im|, sizes in double, where the sum of two floats is exact.
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/vector.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 1 || n_attributes != 2) return 1;
  const int64_t n = static_cast<int64_t>(attributes[0]);
  const int64_t step = static_cast<int64_t>(attributes[1]) * inputs[0].strides[0];
  const auto *x = static_cast<const complex *>(inputs[0].data);
  const int64_t at = best_of_vector<double>(
      x, n, step, [](complex v) { return std::fabs(static_cast<double>(v.re)) + std::fabs(static_cast<double>(v.im)); },
      [](double a, double b) { return a > b; });
  *static_cast<int32_t *>(outputs[0].data) = static_cast<int32_t>(at + 1);
  return 0;
}
