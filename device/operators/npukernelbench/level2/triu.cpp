// The upper triangle row by row: a half number survives being widened and narrowed.
#include "sagebook_kernel.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 1 || n_attributes != 1) return 1;
  const int64_t m = inputs[0].shape[inputs[0].ndim - 2], n = WideRow(inputs[0]).columns();
  const int64_t diagonal = static_cast<int64_t>(attributes[0]);
  return wide_rows({&inputs[0]}, {&outputs[0]}, [=](const float *const *x, float *const *y, int64_t r) {
    const int64_t cut = std::min(n, std::max<int64_t>(0, r % m + diagonal));
    std::fill_n(y[0], cut, 0.0f);
    std::copy(x[0] + cut, x[0] + n, y[0] + cut);
  });
}
