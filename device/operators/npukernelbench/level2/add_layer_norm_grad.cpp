// Gradients of a layer norm of x1 + x2 from given statistics; what is added to dx comes as a seventh input.
#include "sagebook_kernel.h"
#include "../../common/norm_grads.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t n_attributes) {
  if (n_inputs < 6 || n_inputs > 7 || n_outputs != 3 || n_attributes != 1) return 1;
  const Dense gamma(inputs[5]);
  const int64_t n = gamma.size(0);
  const bool more = n_inputs == 7;
  const auto parts = wide_rows_with(
      {&inputs[0], &inputs[1], &inputs[2], &inputs[3], &inputs[4], &inputs[more ? 6 : 0]}, {&outputs[0]}, PARTS,
      sums_of(n), [&](const float *const *x, float *const *y, int64_t, Sums &own) {
        const float rstd = x[3][0], mean = x[4][0];
        float *s = own.scaled.data();
        for (int64_t i = 0; i < n; ++i) s[i] = (x[1][i] + x[2][i] - mean) * rstd;
        norm_grad_row(x[0], s, y[0], n, rstd, gamma.data(), true, own);
        for (int64_t i = 0; more && i < n; ++i) y[0][i] += x[5][i];
      });
  write_sums(parts, &Sums::gamma, outputs[1]);
  write_sums(parts, &Sums::beta, outputs[2]);
  return 0;
}
