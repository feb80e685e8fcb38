#pragma once
// One output element for each input element: dense tensors in pieces, others row by row.
#include "../common/rows.h"
#include "../common/simd.h"

namespace {

inline bool dense(const sb_tensor &t) {
  int64_t step = 1;
  for (int64_t d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] != 1 && t.strides[d] != step) return false;
    step *= t.shape[d];
  }
  return true;
}

// y[i] = of(x[i]) for vectors of lanes; `of` must map lanes independently.
template <class Of>
void map_elements(const sb_tensor &x, const sb_tensor &y, Of of) {
  const auto piece = [of](const float *from, float *to, int64_t n) {
    int64_t i = 0;
    for (; i + W <= n; i += W) store(to + i, of(load(from + i)));
    if (i < n) store_part(to + i, of(load_part(from + i, n - i, 0)), n - i);
  };
  if (!dense(x) || !dense(y)) {
    const int64_t columns = Rows(x).columns;
    map_rows(x, y, [&](const float *from, float *to) { piece(from, to, columns); });
    return;
  }
  constexpr int64_t PIECE = 4096;
  const int64_t n = Places(x, x.ndim).count;
  const float *from = static_cast<const float *>(x.data);
  float *to = static_cast<float *>(y.data);
#pragma omp parallel for schedule(static) if (n >= SB_PARALLEL)
  for (int64_t i = 0; i < n; i += PIECE) piece(from + i, to + i, n - i < PIECE ? n - i : PIECE);
}

}  // namespace
