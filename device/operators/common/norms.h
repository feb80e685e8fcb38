#pragma once
// Statistics of rows, and what is made with them.
#include <cmath>

#include "../common/dense.h"
#include "../common/wide_rows.h"

namespace {

struct Moments {
  double mean, rstd;
};

// Mean and 1 / sqrt(variance + eps) of a row, the variance about the mean.
inline Moments moments_of(const float *x, int64_t n, double eps) {
  const double mean = sum_lanes(n, [=](int64_t i) { return x[i]; }) / static_cast<double>(n);
  const double square = sum_lanes(n, [=](int64_t i) {
    const double d = x[i] - mean;
    return d * d;
  });
  return {mean, 1.0 / std::sqrt(square / static_cast<double>(n) + eps)};
}

// y = (x - mean) * rstd * gamma + beta; a mean far from 0 keeps its digits in two floats.
inline void standardise(const float *x, float *y, int64_t n, Moments m, const float *gamma, const float *beta) {
  const float high = static_cast<float>(m.mean), low = static_cast<float>(m.mean - high);
  const float rstd = static_cast<float>(m.rstd);
  for (int64_t i = 0; i < n; ++i) y[i] = ((x[i] - high) - low) * rstd * gamma[i] + beta[i];
}

inline double rstd_about_zero(const float *x, int64_t n, double eps) {
  const double square = sum_lanes(n, [=](int64_t i) { return static_cast<double>(x[i]) * x[i]; });
  return 1.0 / std::sqrt(square / static_cast<double>(n) + eps);
}

inline void scaled_row(const float *x, float *y, int64_t n, double rstd, const float *gamma) {
  const float factor = static_cast<float>(rstd);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * gamma[i];
}

}  // namespace
