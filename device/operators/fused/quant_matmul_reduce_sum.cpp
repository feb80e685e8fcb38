// int8 products of a batch, each scaled by its own rows, summed in float, times the column scales.
#include "sagebook_kernel.h"
#include "../common/matrices.h"
#include "../common/dense.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 1) return 1;
  Dense a(inputs[0]), b(inputs[1]), columns(inputs[2]), rows(inputs[3]);
  if (a.code || b.code || columns.code || rows.code) return 2;
  const int64_t count = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  Dense one({m, n}), out({m, n});
  for (int64_t g = 0; g < count; ++g) {
    if (const int code = product(a.data() + g * m * k, b.data() + g * k * n, one.data(), m, k, n)) return code;
    for (int64_t i = 0; i < m; ++i) {
      const float factor = rows.data()[g * m + i];
      for (int64_t j = 0; j < n; ++j) out.data()[i * n + j] += factor * one.data()[i * n + j];
    }
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) out.data()[i * n + j] *= columns.data()[j];
  return out.into(outputs[0]);
}
