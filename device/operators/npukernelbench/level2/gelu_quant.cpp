// gelu(x) * scale of a row in float, then bytes by a fixed offset or by the row's own step.
#include "sagebook_kernel.h"
#include "../../common/quantise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs < 2 || n_inputs > 3 || n_outputs != 4 - n_inputs || n_attributes != 2) return 1;
  const std::vector<float> scale = floats_of(inputs[1]), offset = floats_of(inputs[n_inputs - 1]);
  const int64_t n = WideRow(inputs[0]).columns();
  const bool by_tanh = attributes[0] != 0;
  const auto gelu = [&](const float *x, float *y) {
    if (by_tanh) {
      for (int64_t i = 0; i < n; ++i) y[i] = gelu_tanh_of(x[i]) * scale[i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = gelu_erf_of(x[i]) * scale[i];
    }
  };
  if (n_inputs == 3)
    return wide_rows({&inputs[0]}, {&outputs[0]}, [&](const float *const *x, float *const *y, int64_t) {
      gelu(x[0], y[0]);
      for (int64_t i = 0; i < n; ++i) y[0][i] = to_byte(y[0][i] + offset[i]);
    });
  return wide_rows({&inputs[0]}, {&outputs[0], &outputs[1]}, [&](const float *const *x, float *const *y, int64_t) {
    gelu(x[0], y[0]);
    y[1][0] = quantise_row(y[0], y[0], n);
  });
}
