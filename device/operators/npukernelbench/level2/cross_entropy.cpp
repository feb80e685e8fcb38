// log p of each row, then its loss; rows are added in their order, in double.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/softmax_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 2 || n_attributes != 3) return 1;
  const int64_t rows = inputs[0].shape[0], classes = inputs[0].shape[1];
  const int64_t ignored = static_cast<int64_t>(attributes[0]);
  const double share = attributes[1];
  const int reduction = static_cast<int>(attributes[2]);
  const std::vector<float> weight = floats_of(inputs[2]);
  const auto *targets = static_cast<const int64_t *>(inputs[1].data);
  std::vector<double> loss(rows), used(rows);
  const int code = wide_rows({&inputs[0]}, {&outputs[1]}, [&](const float *const *x, float *const *y, int64_t r) {
    log_softmax_row(x[0], y[0], classes);
    const int64_t t = targets[r * inputs[1].strides[0]];
    if (t == ignored) return;
    const float *log_p = y[0], *w = weight.data();
    used[r] = w[t];
    loss[r] = -(1.0 - share) * w[t] * log_p[t];
    if (share != 0.0)
      loss[r] -= share / static_cast<double>(classes) *
                 sum_lanes(classes, [=](int64_t j) { return static_cast<double>(log_p[j]) * w[j]; });
  });
  if (code != 0) return code;
  double total = 0, by = 0;
  for (int64_t r = 0; r < rows; ++r) total += loss[r], by += used[r];
  Dense result(std::vector<int64_t>(outputs[0].shape, outputs[0].shape + outputs[0].ndim));
  if (reduction == 0) {
    std::copy_n(loss.data(), rows, result.data());
  } else {
    result.data()[0] = static_cast<float>(reduction == 1 ? total / by : total);
  }
  return result.into(outputs[0]);
}
