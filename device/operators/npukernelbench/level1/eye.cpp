// Zeros, row by row, with the bits of one where row and column agree.
#include "sagebook_kernel.h"
#include "../../common/dtypes.h"
#include "../../common/rows.h"

namespace {

template <class T>
int unit_matrices(const sb_tensor &y, T one) {
  if (y.ndim < 2) return 1;
  const int64_t rows = y.shape[y.ndim - 2], columns = y.shape[y.ndim - 1], step = y.strides[y.ndim - 1];
  const Places places(y, y.ndim - 1);
#pragma omp parallel for schedule(static) if (places.count * columns >= SB_PARALLEL)
  for (int64_t r = 0; r < places.count; ++r) {
    T *row = static_cast<T *>(y.data) + places(r);
    if (step == 1) {
      std::memset(row, 0, sizeof(T) * columns);
    } else {
      for (int64_t j = 0; j < columns; ++j) row[j * step] = 0;
    }
    if (r % rows < columns) row[r % rows * step] = one;
  }
  return 0;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  switch (outputs[0].dtype) {
    case SB_FLOAT16: return unit_matrices<uint16_t>(outputs[0], 0x3c00);
    case SB_FLOAT32: return unit_matrices<uint32_t>(outputs[0], 0x3f800000u);
    case SB_INT32: return unit_matrices<uint32_t>(outputs[0], 1);
    default: return UNKNOWN_DTYPE;
  }
}
