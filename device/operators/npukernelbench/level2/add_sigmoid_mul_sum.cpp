// Sums over the middle axis, one row of sums at a time, in double.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/functions.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  const Dense x(inputs[0]), y(inputs[1]), scale(inputs[2]), rows(inputs[3]), weight(inputs[4]);
  const int64_t count = x.size(0), middle = x.size(1), n = x.size(2);
  Dense out({count, n});
#pragma omp parallel for schedule(static) if (count * middle * n >= SB_PARALLEL)
  for (int64_t b = 0; b < count; ++b) {
    std::vector<double> total(n);
    for (int64_t s = 0; s < middle; ++s) {
      const float *from = x.data() + (b * middle + s) * n, *by = weight.data() + (b * middle + s) * n;
      const float factor = scale.data()[0], row = rows.data()[b * middle + s];
      for (int64_t d = 0; d < n; ++d) total[d] += sigmoid_of((from[d] + y.data()[d]) * factor) * row * by[d];
    }
    for (int64_t d = 0; d < n; ++d) out.data()[b * n + d] = static_cast<float>(total[d]);
  }
  return out.into(outputs[0]);
}
