// scalar^x = 2^(x log2(scalar)), the exponent in double.
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/lists.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_attributes != 1) return 1;
  const double log2_base = std::log2(attributes[0]);
  return map_float_lists<1>(inputs, n_inputs, outputs, n_outputs, 0, [=](int64_t) {
    return [log2_base](float x) { return power_of(log2_base, x); };
  });
}
