// Each token's rows are widened as they are found, weighted and gathered in float, rounded once.
#include "sagebook_kernel.h"
#include "../common/dense.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 1) return 1;
  Dense y(inputs[0]), weights(inputs[2]), out(inputs[3]);
  if (y.code || weights.code || out.code) return 2;
  const int64_t t = weights.size(0), k = weights.size(1), d = y.size(1);
  const sb_tensor &places = inputs[1];
#pragma omp parallel for schedule(static) if (t * k * d >= SB_PARALLEL)
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < k; ++j) {
      const int64_t place = static_cast<const int32_t *>(places.data)[(i * k + j) * places.strides[0]];
      const float weight = weights.data()[i * k + j], *row = y.data() + place * d;
      for (int64_t l = 0; l < d; ++l) out.data()[i * d + l] += weight * row[l];
    }
  return out.into(outputs[0]);
}
