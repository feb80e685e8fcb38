// Softmax of each row of what was chosen.
#include "sagebook_kernel.h"
#include "../../common/softmax_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1 || inputs[0].dtype != SB_BOOL) return 1;
  sb_tensor chosen = inputs[0];
  chosen.dtype = SB_UINT8;
  const int64_t n = WideRow(inputs[1]).columns();
  return wide_rows({&chosen, &inputs[1], &inputs[2]}, {&outputs[0]},
                   [=](const float *const *x, float *const *y, int64_t) {
                     for (int64_t i = 0; i < n; ++i) y[0][i] = x[0][i] != 0.0f ? x[1][i] : x[2][i];
                     softmax_row(y[0], y[0], n);
                   });
}
