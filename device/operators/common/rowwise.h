#pragma once
// Rows of dense floats: gates, steps of a quantisation, whole numbers out.
#include <cmath>

#include "../common/dense.h"
#include "../common/exp.h"

namespace {

inline vfloat sigmoid_lanes(vfloat x) {
  const vfloat high = splat(87.0f), turned = -x;
  return 1.0f / (1.0f + exp_lanes(turned > high ? high : turned));
}

// Calls with(i, x[i .. i + W)) for the lanes of a row and writes what it gives; the last ones are padded with zeros.
template <class With>
inline void over_lanes(float *x, int64_t n, With with) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(x + i, with(i, load(x + i)));
  if (i < n) store_part(x + i, with(i, load_part(x + i, n - i, 0)), n - i);
}

// Divides a row by its step, the largest size over 127, and returns the step; a row of zeros stays as it is.
inline float into_steps(float *x, int64_t n) {
  float most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::fabs(x[i]) > most ? std::fabs(x[i]) : most;
  const float step = most / 127.0f, inverse = most > 0 ? 127.0f / most : 0.0f;
  for (int64_t i = 0; i < n; ++i) x[i] *= inverse;
  return step;
}

// Rounds to nearest whole numbers, ties to even.
inline int into_bytes(Dense &x, const sb_tensor &y) {
  const sb_tensor own = x.tensor();
  return map_blocks<float, int8_t, 1>(&own, y, [](float v) { return static_cast<int8_t>(std::nearbyint(v)); });
}

}  // namespace
