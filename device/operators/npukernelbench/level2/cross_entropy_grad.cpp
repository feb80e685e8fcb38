// d - exp(log p) * sum of d, d = -g ((1 - e) w[t] [j = t] + e w[j] / C); the sum is known beforehand.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 4 || n_outputs != 1 || n_attributes != 3) return 1;
  const int64_t rows = inputs[1].shape[0], classes = inputs[1].shape[1];
  const int64_t ignored = static_cast<int64_t>(attributes[0]);
  const double share = attributes[1], even = share / static_cast<double>(classes);
  const std::vector<float> weight = floats_of(inputs[3]), given = floats_of(inputs[0]);
  const auto *targets = static_cast<const int64_t *>(inputs[2].data);
  const float *w = weight.data();
  double by = 1.0;
  if (attributes[2] == 1.0) {
    by = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t t = targets[r * inputs[2].strides[0]];
      if (t != ignored) by += w[t];
    }
  }
  const double all = sum_lanes(classes, [=](int64_t j) { return w[j]; });
  return wide_rows({&inputs[1]}, {&outputs[0]}, [&](const float *const *x, float *const *y, int64_t r) {
    const int64_t t = targets[r * inputs[2].strides[0]];
    const double g = t == ignored ? 0.0 / by : given[given.size() > 1 ? r : 0] / by;
    const float on_target = static_cast<float>(g * (1.0 - share) * w[t]), each = static_cast<float>(g * even);
    const float sum = static_cast<float>(g * ((1.0 - share) * w[t] + even * all));
    for (int64_t j = 0; j < classes; ++j) y[0][j] = exp_of(x[0][j]) * sum - each * w[j];
    y[0][t] -= on_target;
  });
}
