// Attention to picked keys: each query gathers its own, for all heads at once.
#include "sagebook_kernel.h"
#include "../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]), out({q.size(0), q.size(1), q.size(2)});
  if (q.code || k.code || v.code) return 2;
  const int64_t s = q.size(0), h = q.size(1), d = q.size(2), picks = inputs[3].shape[1];
  const auto *picked = static_cast<const int32_t *>(inputs[3].data);
  const auto *counts = static_cast<const int32_t *>(inputs[4].data);
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
#pragma omp parallel for schedule(dynamic) if (s > 1 && s * h * picks * d >= 16 * SB_PARALLEL)
  for (int64_t i = 0; i < s; ++i) {
    const int64_t count = counts[i * inputs[4].strides[0]];
    std::vector<float> keys(count * d), values(count * d);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t row = picked[i * inputs[3].strides[0] + j * inputs[3].strides[1]];
      std::memcpy(keys.data() + j * d, k.data() + row * d, sizeof(float) * d);
      std::memcpy(values.data() + j * d, v.data() + row * d, sizeof(float) * d);
    }
    attend(q.data() + i * h * d, keys.data(), values.data(), out.data() + i * h * d, h, count, d, d, scale, no_mask);
  }
  return out.into(outputs[0]);
}
