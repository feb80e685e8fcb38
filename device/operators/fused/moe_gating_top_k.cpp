// The k largest logits of a row kept in order while it is scanned; only these get a weight.
#include <cmath>
#include <vector>

#include "sagebook_kernel.h"
#include "../common/rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 2 || n_attributes != 2) return 1;
  const int64_t n = inputs[0].shape[1], k = static_cast<int64_t>(attributes[0]);
  const sb_tensor &weights = outputs[0], &experts = outputs[1];
  if (k < 1 || k > n) return 2;
  read_rows(inputs[0], [&](const float *x, int64_t r) {
    std::vector<float> best(k, -__builtin_inff());
    std::vector<int32_t> index(k, 0);
    for (int64_t i = 0; i < n; ++i) {
      if (!(x[i] > best[k - 1])) continue;
      int64_t at = k - 1;
      for (; at > 0 && x[i] > best[at - 1]; --at) {
        best[at] = best[at - 1];
        index[at] = index[at - 1];
      }
      best[at] = x[i];
      index[at] = static_cast<int32_t>(i);
    }
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += std::exp(static_cast<double>(best[i]) - best[0]);
    for (int64_t i = 0; i < k; ++i) {
      const double share = std::exp(static_cast<double>(best[i]) - best[0]) / sum;
      static_cast<float *>(weights.data)[r * weights.strides[0] + i * weights.strides[1]] =
          static_cast<float>(attributes[1] * share);
      static_cast<int32_t *>(experts.data)[r * experts.strides[0] + i * experts.strides[1]] = index[i];
    }
  });
  return 0;
}
