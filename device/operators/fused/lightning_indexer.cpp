// Index scores of a query: one product for all heads, cut at zero, weighted; then the best, the lower index among equals.
#include <algorithm>

#include "sagebook_kernel.h"
#include "../common/dense.h"
#include "../common/matrices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 2 || n_attributes != 1) return 1;
  Dense q(inputs[0]), k(inputs[1]), weights(inputs[2]);
  if (q.code || k.code || weights.code) return 2;
  const int64_t s = q.size(0), h = q.size(1), d = q.size(2), t = k.size(0), best = static_cast<int64_t>(attributes[0]);
  if (best < 1 || best > t) return 3;
  const sb_tensor &indices = outputs[0], &values = outputs[1];
  int failed = 0;
#pragma omp parallel for schedule(dynamic) if (s > 1 && s * h * t * d >= 16 * SB_PARALLEL)
  for (int64_t i = 0; i < s; ++i) {
    std::vector<float> products(h * t), score(t);
    const int code = product(q.data() + i * h * d, k.data(), products.data(), h, d, t, true);
    for (int64_t head = 0; head < h; ++head) {
      const float weight = weights.data()[i * h + head], *row = products.data() + head * t;
      for (int64_t j = 0; j < t; ++j) score[j] += weight * (row[j] > 0 ? row[j] : 0.0f);
    }
    std::vector<int32_t> order(t);
    for (int64_t j = 0; j < t; ++j) order[j] = static_cast<int32_t>(j);
    std::partial_sort(order.begin(), order.begin() + best, order.end(), [&](int32_t a, int32_t b) {
      return score[a] > score[b] || (score[a] == score[b] && a < b);
    });
    for (int64_t j = 0; j < best; ++j) {
      static_cast<int32_t *>(indices.data)[i * indices.strides[0] + j * indices.strides[1]] = order[j];
      static_cast<float *>(values.data)[i * values.strides[0] + j * values.strides[1]] = score[order[j]];
    }
#pragma omp critical
    failed = code ? code : failed;
  }
  return failed;
}
