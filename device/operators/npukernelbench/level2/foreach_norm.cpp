// Norms of tensors: rows are summed in double by all threads, and added in their order.
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != n_outputs || n_attributes != 1) return 1;
  const bool absolute = attributes[0] == 1.0;
  for (int64_t k = 0; k < n_inputs; ++k) {
    const int64_t n = WideRow(inputs[k]).columns();
    std::vector<double> sums(WideRow(inputs[k]).count());
    const int code = wide_rows({&inputs[k]}, [&](const float *const *x, int64_t r) {
      const float *row = x[0];
      sums[r] = absolute ? sum_lanes(n, [=](int64_t i) { return std::fabs(row[i]); })
                         : sum_lanes(n, [=](int64_t i) { return static_cast<double>(row[i]) * row[i]; });
    });
    if (code != 0) return code;
    double total = 0;
    for (double sum : sums) total += sum;
    Dense result(std::vector<int64_t>{});
    result.data()[0] = static_cast<float>(absolute ? total : std::sqrt(total));
    if (const int failed = result.into(outputs[k])) return failed;
  }
  return 0;
}
