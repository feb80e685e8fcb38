// For each batch index a copy from a view that runs backwards, and one of the rest.
#include <algorithm>

#include "sagebook_kernel.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 2) return 1;
  const int64_t seq = axis_of(inputs[0], attributes[0]), batch = axis_of(inputs[0], attributes[1]);
  const int64_t size = inputs[0].shape[seq], count = inputs[0].shape[batch];
  int failed = 0;
#pragma omp parallel for schedule(static) reduction(max : failed)
  for (int64_t b = 0; b < count; ++b) {
    const int64_t length = static_cast<const int64_t *>(inputs[1].data)[b * inputs[1].strides[0]];
    const Slice of(inputs[0], batch, b, 1), to(outputs[0], batch, b, 1);
    if (length > 0) {
      const Slice backwards(*of, seq, length - 1, length, -1), head(*to, seq, 0, length);
      failed = std::max(failed, copy_tensor(*backwards, *head));
    }
    if (length < size) {
      const Slice tail(*of, seq, length, size - length), rest(*to, seq, length, size - length);
      failed = std::max(failed, copy_tensor(*tail, *rest));
    }
  }
  return failed;
}
