// log(sum(exp(x))) along the last axis: the maximum first, then the sum of exp(x - maximum), in float lanes and blocks.
#include <cmath>

#include "sagebook_kernel.h"
#include "../common/exp.h"
#include "../common/rows.h"

namespace {

constexpr int64_t BLOCK = 4096;  // lanes sum this many elements in float, blocks are summed in double

// The maximum of the numbers in the row; a NaN shows up in the sum later.
float maximum(const float *x, int64_t n) {
  vfloat m[4] = {splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff()), splat(-__builtin_inff())};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (int j = 0; j < 4; ++j) m[j] = larger(load(x + i + j * W), m[j]);
  for (; i + W <= n; i += W) m[0] = larger(load(x + i), m[0]);
  if (i < n) m[1] = larger(load_part(x + i, n - i, -__builtin_inff()), m[1]);
  return largest_of(larger(larger(m[0], m[1]), larger(m[2], m[3])));
}

double sum_of_exponentials(const float *x, int64_t n, float shift) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    const int64_t end = begin + BLOCK < n ? begin + BLOCK : n;
    vfloat s0 = {}, s1 = {};
    int64_t i = begin;
    for (; i + 2 * W <= end; i += 2 * W) {
      s0 += exp_lanes(load(x + i) - shift);
      s1 += exp_lanes(load(x + i + W) - shift);
    }
    for (; i + W <= end; i += W) s0 += exp_lanes(load(x + i) - shift);
    if (i < end) s1 += exp_lanes(load_part(x + i, end - i, -__builtin_inff()) - shift);
    total += sum_of(s0 + s1);
  }
  return total;
}

// An infinite maximum cannot be subtracted: the result is that infinity, or NaN where the row holds one.
float of_infinite(const float *x, int64_t n, float top) {
  for (int64_t i = 0; i < n; ++i)
    if (x[i] != x[i]) return x[i];
  return top;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  const int64_t n = Rows(inputs[0]).columns;
  float *out = static_cast<float *>(outputs[0].data);
  const Places place(outputs[0], outputs[0].ndim);
  read_rows(inputs[0], [&](const float *x, int64_t r) {
    const float top = maximum(x, n);
    out[place(r)] = std::isinf(top) ? of_infinite(x, n, top)
                                    : static_cast<float>(top + std::log(sum_of_exponentials(x, n, top)));
  });
  return 0;
}
