// alpha a x + beta y: four rows at a time share each piece of x; a matrix stored by columns is gathered column by column.
#include <vector>

#include "sagebook_kernel.h"
#include "../../common/gemm.h"

namespace {

constexpr int TOGETHER = 4;

// Sums of ROWS rows of n floats times x, in lanes of double: reading the matrix takes the time, and where the two terms
// of the result cancel every digit counts.
template <int ROWS>
inline void dot(const float *a, int64_t down, const float *x, int64_t n, double (&sums)[ROWS]) {
  vdouble acc[ROWS][2] = {};
  int64_t i = 0;
  for (; i + W <= n; i += W)
    for (int h = 0; h < 2; ++h) {
      const int64_t at = i + h * (W / 2);
      const vdouble factor = load_wide(x + at);
      for (int r = 0; r < ROWS; ++r) acc[r][h] += load_wide(a + r * down + at) * factor;
    }
  for (int r = 0; r < ROWS; ++r) {
    sums[r] = sum_of(acc[r][0] + acc[r][1]);
    for (int64_t j = i; j < n; ++j) sums[r] += static_cast<double>(a[r * down + j]) * x[j];
  }
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 1 || n_attributes != 2) return 1;
  const Matrix a(inputs[0]);
  const int64_t m = a.rows, n = a.columns;
  const Vector x(inputs[1]), y(inputs[2]);
  float *out = static_cast<float *>(outputs[0].data);
  const int64_t step = m > 1 ? outputs[0].strides[0] : 1;
  const double alpha = attributes[0], beta = attributes[1];
  std::vector<float> dense(a.across == 1 ? 0 : m * n);
#pragma omp parallel for schedule(static) if (m * n >= SB_PARALLEL)
  for (int64_t i = 0; i < m; i += 16) {
    const int64_t end = i + 16 < m ? i + 16 : m;
    const float *rows = a.at(i, 0);
    int64_t down = a.down;
    if (a.across != 1) {
      for (int64_t j = 0; j < n; ++j)
        for (int64_t r = i; r < end; ++r) dense[r * n + j] = *a.at(r, j);
      rows = dense.data() + i * n;
      down = n;
    }
    double sums[16] = {};
    int64_t r = 0;
    for (; r + TOGETHER <= end - i; r += TOGETHER) {
      double some[TOGETHER] = {};
      dot<TOGETHER>(rows + r * down, down, x.data, n, some);
      for (int t = 0; t < TOGETHER; ++t) sums[r + t] = some[t];
    }
    for (; r < end - i; ++r) {
      double one[1] = {};
      dot<1>(rows + r * down, down, x.data, n, one);
      sums[r] = one[0];
    }
    for (r = i; r < end; ++r) out[r * step] = static_cast<float>(alpha * sums[r - i] + beta * y.data[r]);
  }
  return 0;
}
