#pragma once
// The inner part of a matrix product: M rows of A by one panel of B, two vectors wide, all sums in registers.
#include "../common/tiles.h"

namespace {

constexpr int64_t NR = 2 * W;   // columns of a panel
constexpr int64_t KC = 256;     // length of a block of the sum: a panel of B stays in the first cache, and sums stay short
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int MR = 8;           // 16 sums, 2 vectors of B and 1 of A in 32 registers
#else
constexpr int MR = 6;           // 12 sums of 16 registers
#endif

// acc[i] += sum over l < k of a[i * lda + l] * b[l * ldb + 0 .. NR).
template <int M>
inline void multiply(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, vfloat (&acc)[M][2]) {
  const float *row[M];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) row[i] = a + i * lda;
  for (int64_t l = 0; l < k; ++l) {
    const vfloat b0 = load(b), b1 = load(b + W);
    b += ldb;
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const vfloat x = splat(row[i][l]);
      acc[i][0] += x * b0;
      acc[i][1] += x * b1;
    }
  }
}

// Copies rows [0, k) and columns [0, n) of b, n <= NR, into a panel [k][NR]; the columns beyond n become 0.
inline void pack_panel(const float *b, int64_t row_step, int64_t column_step, int64_t k, int64_t n, float *panel) {
  if (n < NR) std::memset(panel, 0, sizeof(float) * k * NR);
  if (column_step == 1 && n == NR) {
    for (int64_t l = 0; l < k; ++l, panel += NR) {
      store(panel, load(b + l * row_step));
      store(panel + W, load(b + l * row_step + W));
    }
  } else if (row_step == 1) {
    transpose_block(b, column_step, panel, NR, n, k);
  } else {
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j) panel[l * NR + j] = b[l * row_step + j * column_step];
  }
}

// Calls with(M, i) for strips of MR rows and, at the end, smaller powers of two; M is a compile-time number.
template <class With>
inline void strips(int64_t rows, With with) {
  int64_t i = 0;
  for (; i + MR <= rows; i += MR) with(std::integral_constant<int, MR>{}, i);
  for (; i + 4 <= rows; i += 4) with(std::integral_constant<int, 4>{}, i);
  for (; i + 2 <= rows; i += 2) with(std::integral_constant<int, 2>{}, i);
  for (; i < rows; ++i) with(std::integral_constant<int, 1>{}, i);
}

}  // namespace
