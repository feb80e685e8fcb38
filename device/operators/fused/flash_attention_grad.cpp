// Gradients of attention, a head at a time: weights and their gradients are kept, and the three products follow.
// A softmax does not see a number added to all of its scores, and the gradient of a row of scores sums to zero: keys and
// values far from zero are moved there first, which costs nothing and keeps the digits that would cancel.
#include "sagebook_kernel.h"
#include "../common/attend.h"

namespace {

// c = a^T b for a [k, m] and b [k, n].
int turned_product(const float *a, const float *b, float *c, int64_t m, int64_t k, int64_t n) {
  const Sheet left(a, m, k, true), right(b, k, n), out(c, m, n);
  return gemm(left.matrix(), right.matrix(), out.matrix(), [](int64_t, vfloat v) { return v; });
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 3) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]), up(inputs[3]);
  if (q.code || k.code || v.code || up.code) return 2;
  const int64_t heads = q.size(0), s = q.size(1), t = k.size(1), d = q.size(2);
  Dense dq({heads, s, d}), dk({heads, t, d}), dv({heads, t, d});
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  int failed = 0;
#pragma omp parallel for schedule(dynamic) if (heads > 1 && heads * s * t * d >= 16 * SB_PARALLEL)
  for (int64_t h = 0; h < heads; ++h) {
    const float *query = q.data() + h * s * d, *from = up.data() + h * s * d;
    float *key = k.data() + h * t * d, *value = v.data() + h * t * d;
    centre(key, t, d);
    centre(value, t, d);
    std::vector<float> p(s * t), dp(s * t);
    int code = product(query, key, p.data(), s, d, t, true);
    code = code ? code : product(from, value, dp.data(), s, d, t, true);
    for (int64_t i = 0; i < s; ++i) {
      float *row = p.data() + i * t, *change = dp.data() + i * t;
      for (int64_t j = 0; j < t; ++j) row[j] *= scale;
      const float factor = static_cast<float>(1.0 / weigh(row, t));
      double inner = 0;
      for (int64_t j = 0; j < t; ++j) {
        row[j] *= factor;
        inner += static_cast<double>(row[j]) * change[j];
      }
      for (int64_t j = 0; j < t; ++j) change[j] = row[j] * static_cast<float>(change[j] - inner) * scale;
    }
    code = code ? code : product(dp.data(), key, dq.data() + h * s * d, s, t, d);
    code = code ? code : turned_product(dp.data(), query, dk.data() + h * t * d, t, s, d);
    code = code ? code : turned_product(p.data(), from, dv.data() + h * t * d, t, s, d);
#pragma omp critical
    failed = code ? code : failed;
  }
  if (failed) return failed;
  if (const int code = dq.into(outputs[0])) return code;
  if (const int code = dk.into(outputs[1])) return code;
  return dv.into(outputs[2]);
}
