// Sums scaled back, gated and quantised, a row at a time.
#include "sagebook_kernel.h"
#include "../../common/quantise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  // x alone, or int32 sums with their scales; then smooth and, where the step is fixed, an offset.
  const bool scaled = n_inputs > 0 && inputs[0].dtype == SB_INT32;
  const int64_t first = scaled ? 3 : 1;
  if (n_inputs < first + 1 || n_inputs > first + 2 || n_outputs != first + 3 - n_inputs || n_attributes != 2) return 1;
  const int64_t n = WideRow(inputs[0]).columns() / 2;
  const std::vector<float> weight = scaled ? floats_of(inputs[1]) : std::vector<float>(2 * n, 1.0f);
  const std::vector<float> smooth = floats_of(inputs[first]), offset = floats_of(inputs[n_inputs - 1]);
  const int64_t gate = attributes[0] != 0 ? 0 : n, value = n - gate;
  const auto gated = [&](const float *const *x, float *y) {
    const float by = scaled ? x[1][0] : 1.0f;
    for (int64_t i = 0; i < n; ++i) {
      const float g = x[0][gate + i] * weight[gate + i] * by;
      y[i] = g / (1.0f + exp_of(-g)) * (x[0][value + i] * weight[value + i] * by);
    }
  };
  const sb_tensor &factor = inputs[scaled ? 2 : 0];
  if (n_inputs == first + 2)
    return wide_rows({&inputs[0], &factor}, {&outputs[0]}, [&](const float *const *x, float *const *y, int64_t) {
      gated(x, y[0]);
      for (int64_t i = 0; i < n; ++i) y[0][i] = to_byte(y[0][i] / smooth[i] + offset[i]);
    });
  return wide_rows({&inputs[0], &factor}, {&outputs[0], &outputs[1]},
                   [&](const float *const *x, float *const *y, int64_t) {
                     gated(x, y[0]);
                     for (int64_t i = 0; i < n; ++i) y[0][i] *= smooth[i];
                     y[1][0] = quantise_row(y[0], y[0], n);
                   });
}
