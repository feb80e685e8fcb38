// Squares of differences, or their mean or sum: each part of the rows sums for itself, in double.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/wide_rows.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 1) return 1;
  const int reduction = static_cast<int>(attributes[0]);
  if (reduction == 0)
    return with_float(inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return map_blocks<T, T, 2>(inputs, outputs[0], [](float x, float t) { return (x - t) * (x - t); });
    });
  const int64_t n = WideRow(inputs[0]).columns(), rows = WideRow(inputs[0]).count();
  std::vector<double> sums(rows);
  const int code = wide_rows({&inputs[0], &inputs[1]}, [&](const float *const *x, int64_t r) {
    sums[r] = sum_lanes(n, [=](int64_t i) {
      const double d = x[0][i] - x[1][i];
      return d * d;
    });
  });
  if (code != 0) return code;
  double total = 0;
  for (double sum : sums) total += sum;
  Dense result(std::vector<int64_t>{});
  result.data()[0] = static_cast<float>(reduction == 1 ? total / static_cast<double>(n * rows) : total);
  return result.into(outputs[0]);
}
