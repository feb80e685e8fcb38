#pragma once
// Views of parts of a tensor, and element types by width for what only moves elements.
#include <vector>

#include "../common/blocks.h"

namespace {

inline int64_t bytes_of(int32_t dtype) {
  switch (dtype) {
    case SB_FLOAT64:
    case SB_INT64:
    case SB_COMPLEX64: return 8;
    case SB_FLOAT32:
    case SB_INT32: return 4;
    case SB_FLOAT16:
    case SB_BFLOAT16: return 2;
    default: return 1;
  }
}

// Returns f(Tag<T>{}) for a whole number type T as wide as the elements.
template <class F>
int with_width(int32_t dtype, F f) {
  switch (bytes_of(dtype)) {
    case 8: return f(Tag<uint64_t>{});
    case 4: return f(Tag<uint32_t>{});
    case 2: return f(Tag<uint16_t>{});
    default: return f(Tag<uint8_t>{});
  }
}

// `count` indices of one axis, from `begin`, `step` apart (negative: backwards).
class Slice {
 public:
  Slice(const sb_tensor &t, int64_t axis, int64_t begin, int64_t count, int64_t step = 1)
      : shape_(t.shape, t.shape + t.ndim), strides_(t.strides, t.strides + t.ndim), tensor_(t) {
    shape_[axis] = count;
    tensor_.data = static_cast<char *>(t.data) + begin * strides_[axis] * bytes_of(t.dtype);
    strides_[axis] *= step;
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
  }
  Slice(const Slice &) = delete;
  Slice &operator=(const Slice &) = delete;

  const sb_tensor &operator*() const { return tensor_; }

 private:
  std::vector<int64_t> shape_, strides_;
  sb_tensor tensor_;
};

inline int64_t axis_of(const sb_tensor &t, double dim) {
  const int64_t axis = static_cast<int64_t>(dim);
  return axis < 0 ? axis + t.ndim : axis;
}

// to = from, which broadcasts; both of one element type.
inline int copy_tensor(const sb_tensor &from, const sb_tensor &to) {
  return with_width(to.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(&from, to, [](T x) { return x; });
  });
}

}  // namespace
