// One row at a time: largest, weights and their sum, plain sum, then loss and gradient from the weights kept.
#include "sagebook_kernel.h"
#include "../common/attend.h"
#include "../common/rowwise.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 2 || n_attributes != 2) return 1;
  Dense x(inputs[0]);
  if (x.code) return 2;
  const int64_t n = x.size(0), classes = x.size(1);
  Dense loss({n}), gradient({n, classes});
  const double smoothing = attributes[0], factor = attributes[1];
#pragma omp parallel for schedule(static) if (n * classes >= SB_PARALLEL)
  for (int64_t i = 0; i < n; ++i) {
    const float *row = x.data() + i * classes;
    float *out = gradient.data() + i * classes;
    const int64_t target = static_cast<const int64_t *>(inputs[1].data)[i * inputs[1].strides[0]];
    double lanes[8] = {};
    int64_t j = 0;
    for (; j + 8 <= classes; j += 8)
      for (int l = 0; l < 8; ++l) lanes[l] += row[j + l];
    for (; j < classes; ++j) lanes[0] += row[j];
    double plain = 0;
    for (double lane : lanes) plain += lane;
    std::memcpy(out, row, sizeof(float) * classes);
    float top = 0;
    const double total = weigh(out, classes, &top), logarithm = std::log(total) + top;
    loss.data()[i] = static_cast<float>((1 - smoothing) * (logarithm - row[target]) +
                                        smoothing * (logarithm - plain / static_cast<double>(classes)));
    const float scale = static_cast<float>(factor / total);
    const float shift = static_cast<float>(factor * smoothing / static_cast<double>(classes));
    for (j = 0; j < classes; ++j) out[j] = out[j] * scale - shift;
    out[target] -= static_cast<float>(factor * (1 - smoothing));
  }
  if (const int code = loss.into(outputs[0])) return code;
  return gradient.into(outputs[1]);
}
