// A counting sort of the pairs by expert, which keeps equal ones in order; then rows are copied to their places.
#include <vector>

#include "sagebook_kernel.h"
#include "../common/rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 3 || n_attributes != 1) return 1;
  const sb_tensor &x = inputs[0], &experts = inputs[1], &rows = outputs[0], &places = outputs[1], &ends = outputs[2];
  const int64_t t = x.shape[0], d = x.shape[1], k = experts.shape[1], count = static_cast<int64_t>(attributes[0]);
  const auto expert = [&](int64_t i, int64_t j) {
    return static_cast<const int32_t *>(experts.data)[i * experts.strides[0] + j * experts.strides[1]];
  };
  std::vector<int64_t> next(count + 1), place(t * k);
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < k; ++j) {
      if (expert(i, j) < 0 || expert(i, j) >= count) return 5;
      ++next[expert(i, j) + 1];
    }
  for (int64_t e = 0; e < count; ++e) {
    next[e + 1] += next[e];
    static_cast<int64_t *>(ends.data)[e * ends.strides[0]] = next[e + 1];
  }
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < k; ++j) {
      place[i * k + j] = next[expert(i, j)]++;
      static_cast<int32_t *>(places.data)[i * places.strides[0] + j * places.strides[1]] =
          static_cast<int32_t>(place[i * k + j]);
    }
#pragma omp parallel for schedule(static) if (t * k * d >= SB_PARALLEL)
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < k; ++j) {
      const uint16_t *from = static_cast<const uint16_t *>(x.data) + i * x.strides[0];
      uint16_t *to = static_cast<uint16_t *>(rows.data) + place[i * k + j] * rows.strides[0];
      for (int64_t l = 0; l < d; ++l) to[l * rows.strides[1]] = from[l * x.strides[1]];
    }
  return 0;
}
