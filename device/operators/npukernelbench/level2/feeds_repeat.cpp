// Each row into its place, which all counts before it say; the rest is filled with zeros.
#include "sagebook_kernel.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 2 || n_outputs != 1 || inputs[1].dtype != SB_INT32) return 1;
  const int64_t count = inputs[0].shape[0], size = outputs[0].shape[0];
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t times = static_cast<const int32_t *>(inputs[1].data)[i * inputs[1].strides[0]];
    if (times < 0 || at + times > size) return 5;
    if (times == 0) continue;
    const Slice row(inputs[0], 0, i, 1), place(outputs[0], 0, at, times);
    if (const int code = copy_tensor(*row, *place)) return code;
    at += times;
  }
  if (at == size) return 0;
  const Slice rest(outputs[0], 0, at, size - at), row(inputs[0], 0, 0, 1);
  return with_width(outputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<T, T, 1>(&*row, *rest, [](T) { return T{}; });
  });
}
