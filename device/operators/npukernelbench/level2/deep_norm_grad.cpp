// Gradients of a layer norm of alpha * x + gx from given statistics.
#include "sagebook_kernel.h"
#include "../../common/norm_grads.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 6 || n_outputs != 4 || n_attributes != 1) return 1;
  const Dense gamma(inputs[3]);
  const int64_t n = gamma.size(0);
  const float alpha = static_cast<float>(attributes[0]);
  const auto parts = wide_rows_with(
      {&inputs[0], &inputs[1], &inputs[2], &inputs[4], &inputs[5]}, {&outputs[0], &outputs[1]}, PARTS, sums_of(n),
      [&](const float *const *x, float *const *y, int64_t, Sums &own) {
        const float mean = x[3][0], rstd = x[4][0];
        float *s = own.scaled.data();
        for (int64_t i = 0; i < n; ++i) s[i] = (alpha * x[1][i] + x[2][i] - mean) * rstd;
        norm_grad_row(x[0], s, y[1], n, rstd, gamma.data(), true, own);
        for (int64_t i = 0; i < n; ++i) y[0][i] = alpha * y[1][i];
      });
  write_sums(parts, &Sums::beta, outputs[2]);
  write_sums(parts, &Sums::gamma, outputs[3]);
  return 0;
}
