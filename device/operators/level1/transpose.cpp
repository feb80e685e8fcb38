// A dense copy with the last two axes exchanged, in blocks that fit the first cache and tiles that fit the registers.
#include "sagebook_kernel.h"
#include "../common/rows.h"
#include "../common/tiles.h"

namespace {

constexpr int64_t BLOCK = 64;

// One block of x[i, j] = x[i * si + j * sj] into y[j, i], rows of y `sy` apart with elements `ey` apart.
void copy_block(const float *x, int64_t si, int64_t sj, float *y, int64_t sy, int64_t ey, int64_t rows, int64_t columns) {
  if (sj == 1 && ey == 1) {
    transpose_block(x, si, y, sy, rows, columns);
  } else if (si == 1 && ey == 1) {
    for (int64_t j = 0; j < columns; ++j) std::memcpy(y + j * sy, x + j * sj, sizeof(float) * rows);
  } else {
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) y[j * sy + i * ey] = x[i * si + j * sj];
  }
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1 || inputs[0].ndim < 2) return 1;
  const sb_tensor &in = inputs[0], &out = outputs[0];
  const int64_t d = in.ndim, rows = in.shape[d - 2], columns = in.shape[d - 1];
  // The stride of an axis of size 1 says nothing: there the other axis is the dense one.
  const int64_t si = in.strides[d - 2], sj = columns == 1 ? 1 : in.strides[d - 1];
  const int64_t sy = out.strides[d - 2], ey = rows == 1 ? 1 : out.strides[d - 1];
  const float *x = static_cast<const float *>(in.data);
  float *y = static_cast<float *>(out.data);
  const Places from(in, d - 2), to(out, d - 2);
  const int64_t down = (rows + BLOCK - 1) / BLOCK, across = (columns + BLOCK - 1) / BLOCK;
  const int64_t blocks = from.count * down * across;
#pragma omp parallel for schedule(static) if (blocks * BLOCK * BLOCK >= 2 * SB_PARALLEL)
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t i = b % down * BLOCK, j = b / down % across * BLOCK, matrix = b / (down * across);
    copy_block(x + from(matrix) + i * si + j * sj, si, sj, y + to(matrix) + j * sy + i * ey, sy, ey,
               rows - i < BLOCK ? rows - i : BLOCK, columns - j < BLOCK ? columns - j : BLOCK);
  }
  return 0;
}
