// Attention under a mask, a block of queries at a time; the row's largest score and sum of weights are kept. Scores are
// those of keys moved to zero, what was taken off is put back into the largest one.
#include "sagebook_kernel.h"
#include "../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 3) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]);
  if (q.code || k.code || v.code) return 2;
  const sb_tensor &mask = inputs[3];
  const int64_t heads = q.size(0) * q.size(1), s = q.size(2), d = q.size(3), t = k.size(2);
  Dense out({q.size(0), q.size(1), s, d}), most({q.size(0), q.size(1), s}), sums({q.size(0), q.size(1), s});
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  constexpr int64_t ROWS = 48;
  const int64_t blocks = (s + ROWS - 1) / ROWS;
  std::vector<std::vector<double>> means(heads);
#pragma omp parallel for schedule(static) if (heads * t * d >= SB_PARALLEL)
  for (int64_t h = 0; h < heads; ++h) means[h] = centre(k.data() + h * t * d, t, d);
  int failed = 0;
#pragma omp parallel for schedule(dynamic) if (heads * blocks > 1 && heads * s * t * d >= 16 * SB_PARALLEL)
  for (int64_t job = 0; job < heads * blocks; ++job) {
    const int64_t h = job / blocks, first = job % blocks * ROWS, rows = s - first < ROWS ? s - first : ROWS;
    const int64_t at = h * s + first;
    std::vector<float> scores(rows * t);
    int code = product(q.data() + at * d, k.data() + h * t * d, scores.data(), rows, d, t, true);
    for (int64_t i = 0; i < rows; ++i) {
      float *row = scores.data() + i * t;
      const auto *hidden = static_cast<const uint8_t *>(mask.data) + (first + i) * mask.strides[0];
      for (int64_t j = 0; j < t; ++j)
        row[j] = j > 0 && hidden[j * mask.strides[1]] ? -__builtin_inff() : row[j] * scale;
      double taken = 0;
      for (int64_t l = 0; l < d; ++l) taken += q.data()[(at + i) * d + l] * means[h][l];
      float largest = 0;
      sums.data()[at + i] = static_cast<float>(weigh(row, t, &largest));
      most.data()[at + i] = static_cast<float>(largest + taken * scale);
    }
    code = code ? code : product(scores.data(), v.data() + h * t * d, out.data() + at * d, rows, t, d);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t l = 0; l < d; ++l) out.data()[(at + i) * d + l] /= sums.data()[at + i];
#pragma omp critical
    failed = code ? code : failed;
  }
  if (failed) return failed;
  if (const int code = out.into(outputs[0])) return code;
  if (const int code = most.into(outputs[1])) return code;
  return sums.into(outputs[2]);
}
