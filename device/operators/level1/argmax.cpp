// Index of the largest element of each row: every lane keeps its own best value and index, merged by value, then index.
#include "sagebook_kernel.h"
#include "../common/rows.h"
#include "../common/simd.h"

namespace {

int64_t first_nan(const float *x, int64_t n) {
  int64_t i = 0;
  while (i < n && x[i] == x[i]) ++i;
  return i;
}

// Rows whose indices fit in the int32 lanes.
int64_t argmax(const float *x, int64_t n) {
  constexpr int CHAINS = 4;  // independent comparisons in flight
  vfloat best[CHAINS];
  vint index[CHAINS] = {}, nan = {}, lane = {};
  for (int64_t l = 0; l < W; ++l) lane[l] = static_cast<int32_t>(l);
  for (vfloat &b : best) b = splat(-__builtin_inff());
  // A later element replaces an earlier one only when it is larger, so each lane keeps its first.
  const auto take = [&](int c, vfloat v, int64_t at) {
    const vint better = v > best[c];
    best[c] = better ? v : best[c];
    index[c] = better ? lane + static_cast<int32_t>(at) : index[c];
    nan |= v != v;
  };
  int64_t i = 0;
  for (; i + CHAINS * W <= n; i += CHAINS * W)
    for (int c = 0; c < CHAINS; ++c) take(c, load(x + i + c * W), i + c * W);
  for (; i + W <= n; i += W) take(0, load(x + i), i);
  if (i < n) take(0, load_part(x + i, n - i, -__builtin_inff()), i);

  const auto merge = [&](int into, int from) {
    const vint wins = (best[from] > best[into]) | ((best[from] == best[into]) & (index[from] < index[into]));
    best[into] = wins ? best[from] : best[into];
    index[into] = wins ? index[from] : index[into];
  };
  merge(0, 1);
  merge(2, 3);
  merge(0, 2);
  float top = best[0][0];
  int32_t where = index[0][0], any = nan[0];
  for (int64_t l = 1; l < W; ++l) {
    any |= nan[l];
    if (best[0][l] > top || (best[0][l] == top && index[0][l] < where)) {
      top = best[0][l];
      where = index[0][l];
    }
  }
  return any ? first_nan(x, n) : where;
}

int64_t argmax_any_length(const float *x, int64_t n) {
  constexpr int64_t PART = int64_t{1} << 30;
  int64_t best = argmax(x, n < PART ? n : PART);
  for (int64_t begin = PART; begin < n && x[best] == x[best]; begin += PART) {
    const int64_t other = begin + argmax(x + begin, n - begin < PART ? n - begin : PART);
    if (x[other] > x[best] || x[other] != x[other]) best = other;
  }
  return best;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  const int64_t n = Rows(inputs[0]).columns;
  int64_t *out = static_cast<int64_t *>(outputs[0].data);
  const Places place(outputs[0], outputs[0].ndim);
  read_rows(inputs[0], [&](const float *x, int64_t r) { out[place(r)] = argmax_any_length(x, n); });
  return 0;
}
