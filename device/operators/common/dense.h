#pragma once
// A tensor of floats, half floats or int8 as dense rows of float, and back: what kernels that reuse their inputs work on.
#include <vector>

#include "../common/blocks.h"

namespace {

class Dense {
 public:
  // Widens all of t, whatever its strides.
  explicit Dense(const sb_tensor &t) : Dense(std::vector<int64_t>(t.shape, t.shape + t.ndim)) {
    const auto widen_all = [&](auto tag) {
      using T = typename decltype(tag)::type;
      return map_blocks<T, float, 1>(&t, tensor(), [](auto x) { return static_cast<float>(x); });
    };
    code = t.dtype == SB_INT8 ? widen_all(Tag<int8_t>{}) : with_float(t.dtype, widen_all);
  }

  explicit Dense(std::vector<int64_t> shape) : shape_(std::move(shape)), strides_(shape_.size()) {
    int64_t count = 1;
    for (size_t d = shape_.size(); d-- > 0;) {
      strides_[d] = count;
      count *= shape_[d];
    }
    numbers_.resize(count);
  }

  Dense(const Dense &) = delete;
  Dense &operator=(const Dense &) = delete;

  sb_tensor tensor() {
    return {numbers_.data(), static_cast<int64_t>(shape_.size()), shape_.data(), strides_.data(), SB_FLOAT32};
  }

  float *data() { return numbers_.data(); }
  const float *data() const { return numbers_.data(); }
  int64_t size(int axis) const { return shape_[axis]; }

  // Rounds into a tensor of the same shape and any floating format.
  int into(const sb_tensor &y) {
    const sb_tensor own = tensor();
    return with_float(y.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return map_blocks<float, T, 1>(&own, y, [](float x) { return x; });
    });
  }

  int code = 0;  // what went wrong with reading

 private:
  std::vector<int64_t> shape_, strides_;
  std::vector<float> numbers_;
};

}  // namespace
