#pragma once
// Products of dense float matrices given by pointers, on top of the blocked product.
#include "../common/gemm.h"

namespace {

// A dense [rows, columns] matrix, or its transpose where `turned`.
class Sheet {
 public:
  Sheet(const float *data, int64_t rows, int64_t columns, bool turned = false)
      : shape_{rows, columns}, strides_{turned ? 1 : columns, turned ? rows : 1},
        tensor_{const_cast<float *>(data), 2, shape_, strides_, SB_FLOAT32} {}
  Sheet(const Sheet &) = delete;
  Sheet &operator=(const Sheet &) = delete;

  Matrix matrix() const { return Matrix(tensor_); }

 private:
  int64_t shape_[2], strides_[2];
  sb_tensor tensor_;
};

// c = a b, or c = a b^T where `turned`: b is then stored as [n, k].
inline int product(const float *a, const float *b, float *c, int64_t m, int64_t k, int64_t n, bool turned = false) {
  const Sheet left(a, m, k), right(b, k, n, turned), out(c, m, n);
  return gemm(left.matrix(), right.matrix(), out.matrix(), [](int64_t, vfloat v) { return v; });
}

}  // namespace
