#pragma once
// C = f(A B) for any strides: B is packed into panels by all threads, then each thread takes its share of tiles of C.
#include <vector>

#include "../common/product.h"
#include "../common/rows.h"

namespace {

// A matrix as a pointer and two steps; the step along an axis of size 1 is taken as dense.
struct Matrix {
  float *data;
  int64_t rows, columns, down, across;

  explicit Matrix(const sb_tensor &t)
      : data(static_cast<float *>(t.data)),
        rows(t.shape[0]),
        columns(t.shape[1]),
        down(rows == 1 ? columns : t.strides[0]),
        across(columns == 1 ? 1 : t.strides[1]) {}

  float *at(int64_t i, int64_t j) const { return data + i * down + j * across; }
};

// `finish(j, v)` maps the finished sums v of columns j .. j + W before they are stored; columns beyond n come too.
template <class Finish>
int gemm(const Matrix &a, const Matrix &b, const Matrix &c, Finish finish) {
  const int64_t m = a.rows, k = a.columns, n = b.columns;
  if (b.rows != k || c.rows != m || c.columns != n) return 2;
  // A is read row by row: one whose rows are not dense is copied first, and so is a C that is not stored in dense rows.
  std::vector<float> dense_a(a.across == 1 ? 0 : m * k), dense_c(c.across == 1 ? 0 : m * n);
  const float *left = a.across == 1 ? a.data : dense_a.data();
  const int64_t lda = a.across == 1 ? a.down : k;
  float *out = c.across == 1 ? c.data : dense_c.data();
  const int64_t ldc = c.across == 1 ? c.down : n;
  const int64_t panels = (n + NR - 1) / NR, groups = (m + 4 * MR - 1) / (4 * MR);
  // With few rows a packed B would be used too seldom to be worth its copy.
  const bool pack = m > 2 * MR || b.across != 1;
  const int64_t first_packed = pack ? 0 : n / NR;
  std::vector<float> packed((panels - first_packed) * (k < KC ? k : KC) * NR);

#pragma omp parallel if (m * k * n >= 64 * SB_PARALLEL)
  {
    if (a.across != 1) {
#pragma omp for schedule(static)
      for (int64_t i = 0; i < m; i += NR) {
        const int64_t rows = m - i < NR ? m - i : NR;
        if (a.down == 1) {
          transpose_block(a.at(i, 0), a.across, dense_a.data() + i * k, k, k, rows);
        } else {
          for (int64_t r = i; r < i + rows; ++r)
            for (int64_t l = 0; l < k; ++l) dense_a[r * k + l] = *a.at(r, l);
        }
      }
    }
    for (int64_t begin = 0; begin < k; begin += KC) {
      const int64_t length = k - begin < KC ? k - begin : KC;
      const bool first = begin == 0, last = begin + length == k;
#pragma omp for schedule(static)
      for (int64_t p = first_packed; p < panels; ++p)
        pack_panel(b.at(begin, p * NR), b.down, b.across, length, n - p * NR < NR ? n - p * NR : NR,
                   packed.data() + (p - first_packed) * length * NR);
#pragma omp for schedule(static)
      for (int64_t tile = 0; tile < panels * groups; ++tile) {
        const int64_t p = tile / groups, j = p * NR, top = tile % groups * 4 * MR;
        const bool direct = p < first_packed;
        const float *panel = direct ? b.at(begin, j) : packed.data() + (p - first_packed) * length * NR;
        const int64_t width = n - j < NR ? n - j : NR;
        strips(m - top < 4 * MR ? m - top : 4 * MR, [&](auto rows, int64_t i) {
          constexpr int M = decltype(rows)::value;
          vfloat acc[M][2] = {};
          multiply<M>(length, left + (top + i) * lda + begin, lda, panel, direct ? b.down : NR, acc);
          for (int r = 0; r < M; ++r)
            for (int h = 0; h < 2; ++h) {
              float *to = out + (top + i + r) * ldc + j + h * W;
              const int64_t lanes = width - h * W;
              if (lanes <= 0) continue;
              vfloat v = acc[r][h];
              if (!first) v += lanes >= W ? load(to) : load_part(to, lanes, 0);
              if (last) v = finish(j + h * W, v);
              if (lanes >= W) {
                store(to, v);
              } else {
                store_part(to, v, lanes);
              }
            }
        });
      }
    }
  }
  if (c.across != 1)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) *c.at(i, j) = dense_c[i * n + j];
  return 0;
}

}  // namespace
