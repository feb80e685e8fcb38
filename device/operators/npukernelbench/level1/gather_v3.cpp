// Slices by index: what lies behind the axis is one piece of memory where it is dense, and is copied as such.
#include "sagebook_kernel.h"
#include "../../common/dtypes.h"
#include "../../common/rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 1 || inputs[0].dtype != SB_FLOAT16) return 1;
  const sb_tensor &x = inputs[0], &y = outputs[0];
  const int64_t axis = static_cast<int64_t>(attributes[0]), count = inputs[1].shape[0];
  if (axis < 0 || axis >= x.ndim || y.shape[axis] != count) return 2;
  const auto *from = static_cast<const uint16_t *>(x.data);
  auto *to = static_cast<uint16_t *>(y.data);
  std::vector<int64_t> index(count);
  for (int64_t i = 0; i < count; ++i) {
    index[i] = static_cast<const int64_t *>(inputs[1].data)[i * inputs[1].strides[0]];
    if (index[i] < 0 || index[i] >= x.shape[axis]) return 5;
  }
  // The axes behind the chosen one, as tensors of their own.
  sb_tensor inner_x = x, inner_y = y;
  inner_x.ndim = inner_y.ndim = x.ndim - axis - 1;
  inner_x.shape += axis + 1, inner_x.strides += axis + 1, inner_y.shape += axis + 1, inner_y.strides += axis + 1;
  const Places before_x(x, axis), before_y(y, axis);
  const Places inside_x(inner_x, inner_x.ndim), inside_y(inner_y, inner_y.ndim);
  const int64_t length = inside_x.count;
  const bool dense = inside_x.even && inside_y.even && (length == 1 || (inside_x.step == 1 && inside_y.step == 1));
  const int64_t across_x = x.strides[axis], across_y = y.strides[axis];
#pragma omp parallel for schedule(static) collapse(2) if (before_x.count * count * length >= SB_PARALLEL)
  for (int64_t o = 0; o < before_x.count; ++o)
    for (int64_t block = 0; block < count; block += 64) {
      const int64_t end = block + 64 < count ? block + 64 : count;
      const uint16_t *row = from + before_x(o);
      uint16_t *out = to + before_y(o);
      if (dense && length == 1) {
        for (int64_t i = block; i < end; ++i) out[i * across_y] = row[index[i] * across_x];
      } else if (dense) {
        for (int64_t i = block; i < end; ++i)
          std::memcpy(out + i * across_y, row + index[i] * across_x, sizeof(uint16_t) * length);
      } else {
        for (int64_t i = block; i < end; ++i)
          for (int64_t j = 0; j < length; ++j)
            out[i * across_y + inside_y(j)] = row[index[i] * across_x + inside_x(j)];
      }
    }
  return 0;
}
