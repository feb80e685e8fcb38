#pragma once
// Lists of tensors, which follow each other in a call's inputs: tensor by tensor, elements shared out over the threads.
#include "../common/blocks.h"

namespace {

// outputs[i] = of(i)(x[0], ..., x[N - 1]), x[k] from tensor i of the k-th list.
template <class T, int N, class Of>
int map_lists(const sb_tensor *inputs, sb_tensor *outputs, int64_t count, Of of) {
  for (int64_t i = 0; i < count; ++i) {
    sb_tensor x[N];
    for (int k = 0; k < N; ++k) x[k] = inputs[k * count + i];
    const int code = map_blocks<T, T, N>(x, outputs[i], of(i));
    if (code != 0) return code;
  }
  return 0;
}

// The same for lists of any floating type; `spare` inputs behind the lists are not looked at.
template <int N, class Of>
int map_float_lists(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t count, int64_t spare,
                    Of of) {
  if (count < 1 || n_inputs != N * count + spare) return 1;
  return with_float(inputs[0].dtype, [&](auto tag) {
    return map_lists<typename decltype(tag)::type, N>(inputs, outputs, count, of);
  });
}

// Number i of a tensor of scalars.
template <class S>
inline S scalar_of(const sb_tensor &scalars, int64_t i) {
  return static_cast<const S *>(scalars.data)[i * scalars.strides[0]];
}

}  // namespace
