#pragma once
// One output element for each index, from any element types: inputs broadcast, axes that lie together are merged, and
// a block of elements at a time is widened, computed in a loop of constant length, and narrowed.
#include "../common/dtypes.h"
#include "../common/rows.h"
#include <utility>

namespace {

constexpr int64_t BLOCK = 64;
constexpr int MAX_AXES = 8;

template <class T, class C>
inline void read_block(const T *from, int64_t step, C *to, int64_t n) {
  if (step == 1) {
    if (n == BLOCK) {
      widen(from, to, BLOCK);
    } else {
      widen(from, to, n);
    }
    return;
  }
  T picked[BLOCK];
  for (int64_t i = 0; i < n; ++i) picked[i] = from[i * step];
  widen(picked, to, n);
}

template <class C, class T>
inline void write_block(const C *from, T *to, int64_t step, int64_t n) {
  if (step == 1) {
    if (n == BLOCK) {
      narrow(from, to, BLOCK);
    } else {
      narrow(from, to, n);
    }
    return;
  }
  T made[BLOCK];
  narrow(from, made, n);
  for (int64_t i = 0; i < n; ++i) to[i * step] = made[i];
}

// The axes of `y` without those of size 1, innermost first, neighbours merged where every tensor allows it.
template <int N>
struct Merged {
  int64_t axes = 0, size[MAX_AXES] = {1}, step[N + 1][MAX_AXES] = {};

  Merged(const sb_tensor *x, const sb_tensor &y) {
    for (int64_t d = y.ndim - 1; d >= 0; --d) {
      if (y.shape[d] == 1) continue;
      int64_t here[N + 1];
      for (int k = 0; k < N; ++k) {
        const int64_t e = d - (y.ndim - x[k].ndim);
        here[k] = e < 0 || x[k].shape[e] == 1 ? 0 : x[k].strides[e];
      }
      here[N] = y.strides[d];
      bool joins = axes > 0;
      for (int k = 0; k <= N; ++k) joins = joins && here[k] == step[k][axes - 1] * size[axes - 1];
      if (joins) {
        size[axes - 1] *= y.shape[d];
        continue;
      }
      for (int k = 0; k <= N; ++k) step[k][axes] = here[k];
      size[axes++] = y.shape[d];
    }
    if (axes == 0) axes = 1;
  }

  int64_t rows() const {
    int64_t count = 1;
    for (int64_t d = 1; d < axes; ++d) count *= size[d];
    return count;
  }

  int64_t place(int k, int64_t row) const {
    int64_t at = 0;
    for (int64_t d = 1; d < axes; ++d) {
      at += row % size[d] * step[k][d];
      row /= size[d];
    }
    return at;
  }
};

template <class C, class R, class Of, size_t... I>
inline void compute(const C (*a)[BLOCK], R *out, Of of, std::index_sequence<I...>) {
  for (int64_t j = 0; j < BLOCK; ++j) out[j] = of(a[I][j]...);
}

// y = of(x[0], ..., x[N - 1]), inputs of element type T, outputs of U; `of` takes and gives what these compute in.
template <class T, class U, int N, class Of>
int map_blocks(const sb_tensor *x, const sb_tensor &y, Of of) {
  using C = typename Computed<T>::type;
  using R = typename Computed<U>::type;
  if (y.ndim > MAX_AXES) return 4;
  constexpr int64_t PIECE = 64 * BLOCK;
  const Merged<N> m(x, y);
  const int64_t columns = m.size[0], rows = m.rows(), pieces = (columns + PIECE - 1) / PIECE;
#pragma omp parallel for schedule(static) if (rows * columns >= SB_PARALLEL)
  for (int64_t job = 0; job < rows * pieces; ++job) {
    const int64_t row = job / pieces, begin = job % pieces * PIECE;
    const int64_t end = begin + PIECE < columns ? begin + PIECE : columns;
    const T *from[N];
    for (int k = 0; k < N; ++k) from[k] = static_cast<const T *>(x[k].data) + m.place(k, row);
    U *to = static_cast<U *>(y.data) + m.place(N, row);
    C a[N][BLOCK] = {};
    R out[BLOCK];
    for (int64_t i = begin; i < end; i += BLOCK) {
      const int64_t n = end - i < BLOCK ? end - i : BLOCK;
      for (int k = 0; k < N; ++k) read_block(from[k] + i * m.step[k][0], m.step[k][0], a[k], n);
      compute(a, out, of, std::make_index_sequence<N>{});
      write_block(out, to + i * m.step[N][0], m.step[N][0], n);
    }
  }
  return 0;
}

}  // namespace
