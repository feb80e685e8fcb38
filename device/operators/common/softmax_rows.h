#pragma once
// Softmax and log-softmax of one row of floats; x may be y in the first, not in the second.
#include <cmath>

#include "../common/functions.h"
#include "../common/wide_rows.h"

namespace {

inline float largest_in(const float *x, int64_t n) {
  float m[LANES];
  for (float &lane : m) lane = -__builtin_inff();
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; ++j) m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
  float top = -__builtin_inff();
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  for (float lane : m) top = lane > top ? lane : top;
  return top;
}

inline void softmax_row(const float *x, float *y, int64_t n) {
  const float top = largest_in(x, n);
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - top);
  const float factor = static_cast<float>(1.0 / sum_lanes(n, [=](int64_t i) { return y[i]; }));
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

inline void log_softmax_row(const float *x, float *y, int64_t n) {
  const float top = largest_in(x, n);
  for (int64_t i = 0; i < n; ++i) y[i] = exp_of(x[i] - top);
  const float size = static_cast<float>(std::log(sum_lanes(n, [=](int64_t i) { return y[i]; })));
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - top) - size;
}

}  // namespace
