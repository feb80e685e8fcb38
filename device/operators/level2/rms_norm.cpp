// Root-mean-square normalization along the last axis: the mean square in double, then scale.
#include <cmath>

#include "sagebook_kernel.h"
#include "../common/rows.h"
#include "../common/simd.h"

namespace {

constexpr int64_t H = W / 2;

// In double a square neither overflows nor vanishes, and a long row loses no digits.
double mean_square(const float *x, int64_t n) {
  vdouble s[4] = {};
  int64_t i = 0;
  for (; i + 4 * H <= n; i += 4 * H)
    for (int j = 0; j < 4; ++j) {
      const vdouble v = load_wide(x + i + j * H);
      s[j] += v * v;
    }
  double total = sum_of((s[0] + s[1]) + (s[2] + s[3]));
  for (; i < n; ++i) total += static_cast<double>(x[i]) * x[i];
  return total / static_cast<double>(n);
}

void scale(const float *x, float *y, int64_t n, const float *gamma, float factor) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, load(x + i) * factor * load(gamma + i));
  if (i < n) store_part(y + i, load_part(x + i, n - i, 0) * factor * load_part(gamma + i, n - i, 0), n - i);
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 1) return 1;
  const Vector gamma(inputs[1]);
  const int64_t n = Rows(inputs[0]).columns;
  const double eps = attributes[0];
  map_rows(inputs[0], outputs[0], [&](const float *x, float *y) {
    scale(x, y, n, gamma.data, static_cast<float>(1.0 / std::sqrt(mean_square(x, n) + eps)));
  });
  return 0;
}
