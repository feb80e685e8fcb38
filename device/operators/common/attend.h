#pragma once
// Attention of a few queries over dense float keys and values: scores, weights, average.
#include <cmath>

#include "../common/dense.h"
#include "../common/exp.h"
#include "../common/matrices.h"

namespace {

// Turns n scores into exp(score - maximum) and returns their sum; of no score at all the sum is 0. `top` gets the
// maximum. A score of minus infinity weighs nothing.
inline double weigh(float *s, int64_t n, float *top = nullptr) {
  const float none = -__builtin_inff();
  vfloat most = splat(none);
  int64_t i = 0;
  for (; i + W <= n; i += W) most = larger(load(s + i), most);
  if (i < n) most = larger(load_part(s + i, n - i, none), most);
  const float shift = largest_of(most);
  if (top) *top = shift;
  if (shift == none) {
    for (i = 0; i < n; ++i) s[i] = 0;
    return 0;
  }
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 1024) {
    const int64_t end = begin + 1024 < n ? begin + 1024 : n;
    vfloat sum = {};
    for (i = begin; i + W <= end; i += W) {
      const vfloat e = exp_lanes(load(s + i) - shift);
      store(s + i, e);
      sum += e;
    }
    if (i < end) {
      const vfloat e = exp_lanes(load_part(s + i, end - i, none) - shift);
      store_part(s + i, e, end - i);
      sum += e;
    }
    total += sum_of(sum);
  }
  return total;
}

// out[m, dv] = softmax(scale q k^T) v; q is [m, d], k [n, d], v [n, dv], all dense. `mask(i, scores)` may put minus
// infinity into row i of the scaled scores.
template <class Mask>
int attend(const float *q, const float *k, const float *v, float *out, int64_t m, int64_t n, int64_t d, int64_t dv,
           float scale, Mask mask) {
  std::vector<float> scores(m * n);
  if (const int code = product(q, k, scores.data(), m, d, n, true)) return code;
  std::vector<float> factor(m);
#pragma omp parallel for schedule(static) if (m * n >= SB_PARALLEL)
  for (int64_t i = 0; i < m; ++i) {
    float *row = scores.data() + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] *= scale;
    mask(i, row);
    const double total = weigh(row, n);
    factor[i] = total > 0 ? static_cast<float>(1.0 / total) : 0.0f;
  }
  if (const int code = product(scores.data(), v, out, m, n, dv)) return code;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < dv; ++j) out[i * dv + j] *= factor[i];
  return 0;
}

// Takes the mean row off all rows, and returns it. A softmax over keys does not see it, and scores far from zero do not
// lose their digits to it.
inline std::vector<double> centre(float *x, int64_t rows, int64_t columns) {
  std::vector<double> mean(columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) mean[j] += x[i * columns + j];
  for (double &m : mean) m /= static_cast<double>(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) x[i * columns + j] = static_cast<float>(x[i * columns + j] - mean[j]);
  return mean;
}

inline void no_mask(int64_t, float *) {}

}  // namespace
