#pragma once
// Products in groups whose ends a list of int64 says, into dense floats.
#include <algorithm>

#include "../common/dense.h"
#include "../common/matrices.h"

namespace {

inline int64_t end_of(const sb_tensor &ends, int64_t g) {
  return static_cast<const int64_t *>(ends.data)[g * ends.strides[0]];
}

// The part of one axis of a tensor, and that axis kept.
class Part {
 public:
  Part(const sb_tensor &t, int axis, int64_t begin, int64_t end)
      : shape_(t.shape, t.shape + t.ndim), tensor_(t) {
    shape_[axis] = end - begin;
    tensor_.shape = shape_.data();
    const int64_t bytes = t.dtype == SB_INT8 ? 1 : t.dtype == SB_FLOAT32 ? 4 : 2;
    tensor_.data = static_cast<char *>(t.data) + begin * t.strides[axis] * bytes;
  }
  Part(const Part &) = delete;
  Part &operator=(const Part &) = delete;

  const sb_tensor &tensor() const { return tensor_; }

  // Without the first axis, of which this is one index.
  sb_tensor inner() const {
    sb_tensor t = tensor_;
    t.ndim -= 1;
    t.shape += 1;
    t.strides += 1;
    return t;
  }

 private:
  std::vector<int64_t> shape_;
  sb_tensor tensor_;
};

// out[i] = a[i] b[group of i]; a is [m, k], b is [groups, k, n].
inline int products_by_rows(const sb_tensor &a, const sb_tensor &b, const sb_tensor &ends, float *out) {
  const int64_t k = a.shape[1], n = b.shape[2];
  int64_t begin = 0;
  for (int64_t g = 0; g < ends.shape[0]; ++g) {
    const int64_t end = end_of(ends, g);
    if (end < begin || end > a.shape[0]) return 5;
    if (end > begin) {
      const Part rows(a, 0, begin, end), own(b, 0, g, g + 1);
      Dense left(rows.tensor()), right(own.inner());
      if (left.code || right.code) return 2;
      if (const int code = product(left.data(), right.data(), out + begin * n, end - begin, k, n)) return code;
    }
    begin = end;
  }
  return 0;
}

// out[g] = a[:, part of g] b[part of g]; a is [m, k], b is [k, n].
inline int products_by_sum(const sb_tensor &a, const sb_tensor &b, const sb_tensor &ends, float *out) {
  const int64_t m = a.shape[0], n = b.shape[1];
  int64_t begin = 0;
  for (int64_t g = 0; g < ends.shape[0]; ++g, out += m * n) {
    const int64_t end = end_of(ends, g);
    if (end < begin || end > a.shape[1]) return 5;
    if (end > begin) {
      const Part columns(a, 1, begin, end), rows(b, 0, begin, end);
      Dense left(columns.tensor()), right(rows.tensor());
      if (left.code || right.code) return 2;
      if (const int code = product(left.data(), right.data(), out, m, end - begin, n)) return code;
    } else {
      std::fill(out, out + m * n, 0.0f);
    }
    begin = end;
  }
  return 0;
}

}  // namespace
