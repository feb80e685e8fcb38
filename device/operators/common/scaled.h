#pragma once
// Sums of int8 products scaled back to real numbers.
#include "../common/groups.h"

namespace {

// x[i, j] *= columns[j] * rows[i].
inline void scale(float *x, int64_t m, int64_t n, const float *columns, const float *rows) {
#pragma omp parallel for schedule(static) if (m * n >= SB_PARALLEL)
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) x[i * n + j] = x[i * n + j] * columns[j] * rows[i];
}

}  // namespace
