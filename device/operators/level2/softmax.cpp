// Softmax along the last axis: one pass for the maximum, one for exponentials and their sum, one to divide.
// A row stays in the first cache between the passes, so memory is read once and written once.
#include "sagebook_kernel.h"
#include "../common/exp.h"
#include "../common/rows.h"

namespace {

constexpr int64_t BLOCK = 4096;  // lanes sum this many elements in float, blocks are summed in double

float maximum(const float *x, int64_t n) {
  vfloat m[4] = {splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff())};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (int j = 0; j < 4; ++j) m[j] = larger(load(x + i + j * W), m[j]);
  for (; i + W <= n; i += W) m[0] = larger(load(x + i), m[0]);
  if (i < n) m[1] = larger(load_part(x + i, n - i, -__builtin_inff()), m[1]);
  return largest_of(larger(larger(m[0], m[1]), larger(m[2], m[3])));
}

// y = exp(x - shift); returns the sum.
double exponentials(const float *x, float *y, int64_t n, float shift) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    vfloat s0 = {}, s1 = {};
    int64_t i = begin;
    for (; i + 2 * W <= end; i += 2 * W) {
      const vfloat a = exp_lanes(load(x + i) - shift), b = exp_lanes(load(x + i + W) - shift);
      store(y + i, a);
      store(y + i + W, b);
      s0 += a;
      s1 += b;
    }
    for (; i < end; i += W) {
      const int64_t left = end - i < W ? end - i : W;
      if (left == W) {
        const vfloat a = exp_lanes(load(x + i) - shift);
        store(y + i, a);
        s0 += a;
      } else {
        const vfloat a = exp_lanes(load_part(x + i, left, -__builtin_inff()) - shift);
        store_part(y + i, a, left);
        s1 += a;
      }
    }
    total += sum_of(s0 + s1);
  }
  return total;
}

void scale(float *y, int64_t n, float factor) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, load(y + i) * factor);
  for (; i < n; ++i) y[i] *= factor;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  const int64_t n = Rows(inputs[0]).columns;
  map_rows(inputs[0], outputs[0], [n](const float *x, float *y) {
    const double total = exponentials(x, y, n, maximum(x, n));
    scale(y, n, static_cast<float>(1.0 / total));
  });
  return 0;
}
