// Each output row is put together from its var and, where the mask is set, from the first part of its updates.
#include "sagebook_kernel.h"
#include "../../common/dtypes.h"
#include "../../common/rows.h"

namespace {

// Copies `n` elements between rows of any step.
inline void copy(const uint16_t *from, int64_t step, uint16_t *to, int64_t out_step, int64_t n) {
  if (step == 1 && out_step == 1) {
    std::memcpy(to, from, sizeof(uint16_t) * n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * out_step] = from[i * step];
  }
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != n_outputs + 3 || n_outputs < 1 || n_attributes != 1) return 1;
  const sb_tensor &indices = inputs[n_outputs], &updates = inputs[n_outputs + 1], &mask = inputs[n_outputs + 2];
  const bool rows_axis = attributes[0] == -2;
  for (int64_t t = 0; t < n_outputs; ++t) {
    const sb_tensor &x = inputs[t], &y = outputs[t];
    if (x.dtype != SB_FLOAT16 || x.ndim + 1 != updates.ndim) return 2;
    const auto *pair = static_cast<const int64_t *>(indices.data) + t * indices.strides[0];
    const bool set = static_cast<const uint8_t *>(mask.data)[t * mask.strides[0]] != 0;
    const int64_t start = pair[0], length = set ? pair[indices.strides[1]] : 0;
    sb_tensor own = updates;  // this tensor's updates
    own.ndim = x.ndim;
    own.shape += 1;
    own.strides += 1;
    own.data = static_cast<uint16_t *>(updates.data) + t * updates.strides[0];
    const int64_t columns = x.shape[x.ndim - 1], rows = x.ndim > 1 ? x.shape[x.ndim - 2] : 1;
    const Places from(x, x.ndim - 1), to(y, y.ndim - 1), fresh(own, own.ndim - 1);
    const int64_t x_step = x.strides[x.ndim - 1], y_step = y.strides[y.ndim - 1], u_step = own.strides[own.ndim - 1];
#pragma omp parallel for schedule(static) if (from.count * columns >= SB_PARALLEL)
    for (int64_t r = 0; r < from.count; ++r) {
      const uint16_t *row = static_cast<const uint16_t *>(x.data) + from(r);
      uint16_t *out = static_cast<uint16_t *>(y.data) + to(r);
      if (rows_axis) {
        const int64_t at = r % rows - start;
        const bool replaced = at >= 0 && at < length;
        const uint16_t *source = replaced ? static_cast<const uint16_t *>(own.data) + fresh(r - start) : row;
        copy(source, replaced ? u_step : x_step, out, y_step, columns);
      } else {
        const uint16_t *source = static_cast<const uint16_t *>(own.data) + fresh(r);
        copy(row, x_step, out, y_step, start);
        copy(source, u_step, out + start * y_step, y_step, length);
        const int64_t rest = start + length;
        copy(row + rest * x_step, x_step, out + rest * y_step, y_step, columns - rest);
      }
    }
  }
  return 0;
}
