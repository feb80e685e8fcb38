// Each channel by one thread: its statistics in double, then the norm, over dense copies.
#include "sagebook_kernel.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 5 || n_outputs != 5 || n_attributes != 3) return 1;
  const Dense x(inputs[0]), gamma(inputs[1]), beta(inputs[2]), mean(inputs[3]), var(inputs[4]);
  const bool training = attributes[0] != 0;
  const double momentum = attributes[1], eps = attributes[2];
  const int64_t images = x.size(0), channels = x.size(1);
  Dense y(std::vector<int64_t>(inputs[0].shape, inputs[0].shape + inputs[0].ndim));
  Dense new_mean({channels}), new_var({channels}), used({channels}), rstds({channels});
  int64_t each = 1;
  for (int64_t d = 2; d < inputs[0].ndim; ++d) each *= inputs[0].shape[d];
  const double count = static_cast<double>(images * each);
#pragma omp parallel for schedule(static) if (images * channels * each >= SB_PARALLEL)
  for (int64_t c = 0; c < channels; ++c) {
    double middle = mean.data()[c], spread = var.data()[c];
    double moved_mean = middle, moved_var = spread;
    if (training) {
      double total = 0, square = 0;
      for (int64_t i = 0; i < images; ++i) {
        const float *from = x.data() + (i * channels + c) * each;
        total += sum_lanes(each, [=](int64_t j) { return from[j]; });
      }
      middle = total / count;
      for (int64_t i = 0; i < images; ++i) {
        const float *from = x.data() + (i * channels + c) * each;
        square += sum_lanes(each, [=](int64_t j) { return (from[j] - middle) * (from[j] - middle); });
      }
      spread = square / count;
      moved_mean = (1.0 - momentum) * moved_mean + momentum * middle;
      moved_var = (1.0 - momentum) * moved_var + momentum * square / (count - 1.0);
    }
    const double rstd = 1.0 / std::sqrt(spread + eps);
    const float high = static_cast<float>(middle), low = static_cast<float>(middle - high);
    const float factor = static_cast<float>(rstd) * gamma.data()[c], shift = beta.data()[c];
    for (int64_t i = 0; i < images; ++i) {
      const float *from = x.data() + (i * channels + c) * each;
      float *to = y.data() + (i * channels + c) * each;
      for (int64_t j = 0; j < each; ++j) to[j] = ((from[j] - high) - low) * factor + shift;
    }
    new_mean.data()[c] = static_cast<float>(moved_mean);
    new_var.data()[c] = static_cast<float>(moved_var);
    used.data()[c] = high;
    rstds.data()[c] = static_cast<float>(rstd);
  }
  int code = y.into(outputs[0]);
  Dense *rest[] = {&new_mean, &new_var, &used, &rstds};
  for (int i = 0; i < 4 && code == 0; ++i) code = rest[i]->into(outputs[i + 1]);
  return code;
}
