#pragma once
// Rows of real numbers as int8: rounded to nearest, ties to even, and held within -128 and 127.
#include <cmath>

#include "../common/functions.h"
#include "../common/wide_rows.h"

namespace {

inline float to_byte(float x) {
  // Held first: adding 1.5 * 2^23 rounds only small numbers.
  float c = x < -128.0f ? -128.0f : x;
  c = c > 127.0f ? 127.0f : c;
  return (c + ROUNDER) - ROUNDER;
}

// x becomes bytes in y by the row's own step, which is returned: the largest |x| over 127.
inline float quantise_row(const float *x, float *y, int64_t n) {
  float m[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; ++j) m[j] = std::fabs(x[i + j]) > m[j] ? std::fabs(x[i + j]) : m[j];
  float top = 0.0f;
  for (; i < n; ++i) top = std::fabs(x[i]) > top ? std::fabs(x[i]) : top;
  for (float lane : m) top = lane > top ? lane : top;
  const float step = top / 127.0f;
  for (int64_t k = 0; k < n; ++k) y[k] = to_byte(x[k] / step);
  return step;
}

}  // namespace
