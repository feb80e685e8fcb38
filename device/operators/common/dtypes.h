#pragma once
// From the number of an element type to a C++ type.
#include "sagebook_kernel.h"
#include "../common/formats.h"

namespace {

template <class T>
struct Tag {
  using type = T;
};

constexpr int UNKNOWN_DTYPE = 3;

// Returns f(Tag<T>{}) for a floating type T, UNKNOWN_DTYPE for any other.
template <class F>
int with_float(int32_t dtype, F f) {
  switch (dtype) {
    case SB_FLOAT32: return f(Tag<float>{});
    case SB_FLOAT16: return f(Tag<half>{});
    case SB_BFLOAT16: return f(Tag<bfloat>{});
    default: return UNKNOWN_DTYPE;
  }
}

template <class F>
int with_whole(int32_t dtype, F f) {
  switch (dtype) {
    case SB_INT8: return f(Tag<int8_t>{});
    case SB_UINT8: return f(Tag<uint8_t>{});
    case SB_INT32: return f(Tag<int32_t>{});
    case SB_INT64: return f(Tag<int64_t>{});
    default: return UNKNOWN_DTYPE;
  }
}

template <class F>
int with_number(int32_t dtype, F f) {
  const int done = with_float(dtype, f);
  return done == UNKNOWN_DTYPE ? with_whole(dtype, f) : done;
}

}  // namespace
