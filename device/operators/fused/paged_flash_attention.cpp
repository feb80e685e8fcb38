// Decoding over a paged cache: a sequence's rows of one key head are gathered for all heads of its group.
#include "sagebook_kernel.h"
#include "../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]), out({q.size(0), q.size(1), q.size(2)});
  if (q.code || k.code || v.code) return 2;
  const sb_tensor &table = inputs[3], &lengths = inputs[4];
  const int64_t batch = q.size(0), h = q.size(1), d = q.size(2), size = k.size(1), groups = k.size(2);
  const int64_t together = h / groups;
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
#pragma omp parallel for schedule(dynamic) collapse(2) if (batch * h * d * size >= SB_PARALLEL)
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t length = static_cast<const int32_t *>(lengths.data)[i * lengths.strides[0]];
      std::vector<float> keys(length * d), values(length * d);
      for (int64_t j = 0; j < length; ++j) {
        const int64_t block =
            static_cast<const int32_t *>(table.data)[i * table.strides[0] + j / size * table.strides[1]];
        const int64_t at = ((block * size + j % size) * groups + g) * d;
        std::memcpy(keys.data() + j * d, k.data() + at, sizeof(float) * d);
        std::memcpy(values.data() + j * d, v.data() + at, sizeof(float) * d);
      }
      const int64_t at = (i * h + g * together) * d;
      attend(q.data() + at, keys.data(), values.data(), out.data() + at, together, length, d, d, scale, no_mask);
    }
  return out.into(outputs[0]);
}
