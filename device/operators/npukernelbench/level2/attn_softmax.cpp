// Softmax of each row in float, its sum in double.
#include "sagebook_kernel.h"
#include "../../common/softmax_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 1 || n_outputs != 1) return 1;
  const int64_t n = WideRow(inputs[0]).columns();
  return wide_rows({&inputs[0]}, {&outputs[0]},
                   [=](const float *const *x, float *const *y, int64_t) { softmax_row(x[0], y[0], n); });
}
