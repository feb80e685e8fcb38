// Layer normalization along the last axis: the mean in double, the variance about it, then scale and shift.
// A row stays in the first cache between the three passes, so memory is read once and written once.
#include <cmath>

#include "sagebook_kernel.h"
#include "../common/rows.h"
#include "../common/simd.h"

namespace {

constexpr int64_t H = W / 2;

double mean_of(const float *x, int64_t n) {
  vdouble s[4] = {};
  int64_t i = 0;
  for (; i + 4 * H <= n; i += 4 * H)
    for (int j = 0; j < 4; ++j) s[j] += load_wide(x + i + j * H);
  double total = sum_of((s[0] + s[1]) + (s[2] + s[3]));
  for (; i < n; ++i) total += x[i];
  return total / static_cast<double>(n);
}

// The mean of (x - mean)^2. The mean comes in two floats, so that a row far from zero keeps the digits of x - mean;
// squares are summed in float lanes over a block, and blocks in double.
double variance_of(const float *x, int64_t n, float high, float low) {
  constexpr int64_t BLOCK = 4096;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    vfloat s[4] = {};
    int64_t i = begin;
    for (; i + 4 * W <= end; i += 4 * W)
      for (int j = 0; j < 4; ++j) {
        const vfloat d = (load(x + i + j * W) - high) - low;
        s[j] += d * d;
      }
    total += sum_of((s[0] + s[1]) + (s[2] + s[3]));
    for (; i < end; ++i) {
      const double d = (x[i] - high) - low;
      total += d * d;
    }
  }
  return total / static_cast<double>(n);
}

void normalize(const float *x, float *y, int64_t n, const float *gamma, const float *beta, float high, float low,
               float factor) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, ((load(x + i) - high) - low) * factor * load(gamma + i) + load(beta + i));
  if (i < n) {
    const int64_t left = n - i;
    const vfloat d = (load_part(x + i, left, 0) - high) - low;
    store_part(y + i, d * factor * load_part(gamma + i, left, 0) + load_part(beta + i, left, 0), left);
  }
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 1 || n_attributes != 1) return 1;
  const Vector gamma(inputs[1]), beta(inputs[2]);
  const int64_t n = Rows(inputs[0]).columns;
  const double eps = attributes[0];
  map_rows(inputs[0], outputs[0], [&](const float *x, float *y) {
    const double mean = mean_of(x, n);
    const float high = static_cast<float>(mean), low = static_cast<float>(mean - high);
    const double variance = variance_of(x, n, high, low);
    normalize(x, y, n, gamma.data, beta.data, high, low, static_cast<float>(1.0 / std::sqrt(variance + eps)));
  });
  return 0;
}
