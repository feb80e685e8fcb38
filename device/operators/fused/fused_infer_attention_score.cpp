// Causal attention of the last queries of ragged sequences: one key head and its group of query heads at a time.
#include "sagebook_kernel.h"
#include "../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 4 || n_outputs != 1 || n_attributes != 1) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]), out({q.size(0), q.size(1), q.size(2), q.size(3)});
  if (q.code || k.code || v.code) return 2;
  const int64_t batch = q.size(0), s = q.size(1), h = q.size(2), d = q.size(3), t = k.size(1), groups = k.size(2);
  const int64_t together = h / groups;
#pragma omp parallel for schedule(dynamic) collapse(2) if (batch * s * h * t * d >= 16 * SB_PARALLEL)
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t length = static_cast<const int64_t *>(inputs[3].data)[b * inputs[3].strides[0]];
      std::vector<float> keys(length * d), values(length * d), queries(s * together * d), answers(s * together * d);
      for (int64_t j = 0; j < length; ++j) {
        const int64_t at = ((b * t + j) * groups + g) * d;
        std::memcpy(keys.data() + j * d, k.data() + at, sizeof(float) * d);
        std::memcpy(values.data() + j * d, v.data() + at, sizeof(float) * d);
      }
      // The heads of a group lie side by side: all of them for one query are one piece.
      const int64_t piece = together * d;
      const auto place = [&](int64_t i) { return ((b * s + i) * h + g * together) * d; };
      for (int64_t i = 0; i < s; ++i)
        std::memcpy(queries.data() + i * piece, q.data() + place(i), sizeof(float) * piece);
      attend(queries.data(), keys.data(), values.data(), answers.data(), s * together, length, d, d,
             static_cast<float>(attributes[0]), [&](int64_t row, float *scores) {
               for (int64_t j = length - s + row / together + 1; j < length; ++j) scores[j] = -__builtin_inff();
             });
      for (int64_t i = 0; i < s; ++i)
        std::memcpy(out.data() + place(i), answers.data() + i * piece, sizeof(float) * piece);
    }
  return out.into(outputs[0]);
}
