#pragma once
// Gradients of norms: each part of the rows sums gradients of the parameters for itself, in double; the parts are then
// added in their order, so that neither the number of threads nor their turns change a bit.
#include "../common/norms.h"

namespace {

struct Sums {
  std::vector<double> gamma, beta;
  std::vector<float> scaled;  // of one row: what was normalised, times rstd
};

constexpr int64_t PARTS = 8;

// dx = rstd * (g - mean(g) - s * mean(g s)), g = dy * gamma; without `centred` the mean of g stays.
inline void norm_grad_row(const float *dy, const float *s, float *dx, int64_t n, float rstd, const float *gamma,
                          bool centred, Sums &sums) {
  const double count = static_cast<double>(n);
  const double along = sum_lanes(n, [=](int64_t i) { return static_cast<double>(dy[i] * gamma[i]) * s[i]; }) / count;
  const double mean = centred ? sum_lanes(n, [=](int64_t i) { return dy[i] * gamma[i]; }) / count : 0.0;
  double *by_gamma = sums.gamma.data(), *by_beta = sums.beta.data();
  for (int64_t i = 0; i < n; ++i) {
    by_gamma[i] += static_cast<double>(dy[i]) * s[i];
    by_beta[i] += dy[i];
  }
  const float a = static_cast<float>(along), m = static_cast<float>(mean);
  for (int64_t i = 0; i < n; ++i) dx[i] = rstd * (dy[i] * gamma[i] - m - s[i] * a);
}

// Adds the parts and writes one row of floats.
inline void write_sums(const std::vector<Sums> &parts, std::vector<double> Sums::*which, const sb_tensor &to) {
  float *out = static_cast<float *>(to.data);
  for (int64_t i = 0; i < to.shape[0]; ++i) {
    double total = 0;
    for (const Sums &part : parts) total += (part.*which)[i];
    out[i * to.strides[0]] = static_cast<float>(total);
  }
}

inline Sums sums_of(int64_t n) {
  return {std::vector<double>(n), std::vector<double>(n), std::vector<float>(n)};
}

}  // namespace
