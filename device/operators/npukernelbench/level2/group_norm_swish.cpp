// Each group of channels of each image, one piece of memory, by one thread.
#include "sagebook_kernel.h"
#include "../../common/functions.h"
#include "../../common/norms.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 3 || n_attributes != 4) return 1;
  const Dense x(inputs[0]), gamma(inputs[1]), beta(inputs[2]);
  const int64_t groups = static_cast<int64_t>(attributes[0]), images = x.size(0), channels = x.size(1);
  const double eps = attributes[1];
  const bool swish = attributes[2] != 0;
  const float scale = static_cast<float>(attributes[3]);
  int64_t each = 1;
  for (int64_t d = 2; d < inputs[0].ndim; ++d) each *= inputs[0].shape[d];
  const int64_t members = channels / groups, size = members * each;
  Dense y(std::vector<int64_t>(inputs[0].shape, inputs[0].shape + inputs[0].ndim));
  Dense means({images, groups}), rstds({images, groups});
#pragma omp parallel for schedule(static) if (images * channels * each >= SB_PARALLEL)
  for (int64_t g = 0; g < images * groups; ++g) {
    const Moments m = moments_of(x.data() + g * size, size, eps);
    const float high = static_cast<float>(m.mean), low = static_cast<float>(m.mean - high);
    for (int64_t c = 0; c < members; ++c) {
      const int64_t channel = g % groups * members + c;
      const float factor = static_cast<float>(m.rstd) * gamma.data()[channel], shift = beta.data()[channel];
      const float *from = x.data() + g * size + c * each;
      float *to = y.data() + g * size + c * each;
      for (int64_t j = 0; j < each; ++j) to[j] = ((from[j] - high) - low) * factor + shift;
      for (int64_t j = 0; swish && j < each; ++j) to[j] = to[j] / (1.0f + exp_of(-scale * to[j]));
    }
    means.data()[g] = high;
    rstds.data()[g] = static_cast<float>(m.rstd);
  }
  int code = y.into(outputs[0]);
  if (code == 0) code = means.into(outputs[1]);
  return code != 0 ? code : rstds.into(outputs[2]);
}
