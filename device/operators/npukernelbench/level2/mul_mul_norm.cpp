// x = a * b * c in float, then its layer norm, `add` in the place of eps.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 6 || n_outputs != 1) return 1;
  const std::vector<float> gamma = floats_of(inputs[4]), beta = floats_of(inputs[5]);
  const float c = floats_of(inputs[2])[0];
  const double add = floats_of(inputs[3])[0];
  const int64_t n = inputs[0].shape[1];
  return wide_rows({&inputs[0], &inputs[1]}, {&outputs[0]}, [&](const float *const *x, float *const *y, int64_t) {
    for (int64_t i = 0; i < n; ++i) y[0][i] = x[0][i] * x[1][i] * c;
    standardise(y[0], y[0], n, moments_of(y[0], n, add), gamma.data(), beta.data());
  });
}
