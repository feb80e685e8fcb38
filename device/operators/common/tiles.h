#pragma once
// Transposition of a W x W tile in registers: log2 W rounds, each exchanging lanes between pairs of rows.
#include "../common/simd.h"

namespace {

// Lane l of the upper row takes from the lower one where bit S of l is set, and the other way round.
template <int S, int... L>
inline void exchange(vfloat &a, vfloat &b, std::integer_sequence<int, L...>) {
  const vfloat x = __builtin_shuffle(a, b, vint{(L & S ? int(W) + L - S : L)...});
  b = __builtin_shuffle(a, b, vint{(L & S ? int(W) + L : L + S)...});
  a = x;
}

template <int S>
inline void round_of(vfloat *r) {
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i)
    if ((i & S) == 0) exchange<S>(r[i], r[i + S], std::make_integer_sequence<int, int(W)>{});
}

// to[j * to_step + i] = from[i * from_step + j] for i, j < W.
inline void transpose_tile(const float *from, int64_t from_step, float *to, int64_t to_step) {
  vfloat r[W];
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) r[i] = load(from + i * from_step);
  round_of<1>(r);
  round_of<2>(r);
  if constexpr (W > 4) round_of<4>(r);
  if constexpr (W > 8) round_of<8>(r);
#pragma GCC unroll 16
  for (int j = 0; j < W; ++j) store(to + j * to_step, r[j]);
}

// The same for any size: whole tiles in registers, the strips at the edges element by element.
inline void transpose_block(const float *from, int64_t from_step, float *to, int64_t to_step, int64_t rows,
                            int64_t columns) {
  int64_t i = 0;
  for (; i + W <= rows; i += W) {
    int64_t j = 0;
    for (; j + W <= columns; j += W) transpose_tile(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
    for (; j < columns; ++j)
      for (int64_t k = i; k < i + W; ++k) to[j * to_step + k] = from[k * from_step + j];
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
}

}  // namespace
