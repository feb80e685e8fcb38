// Parts of an int8 sum in groups, each giving a matrix of its own, scaled by the group's column and row scales.
#include "sagebook_kernel.h"
#include "../../common/scaled.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  const int64_t m = inputs[0].shape[0], n = inputs[1].shape[1], groups = inputs[4].shape[0];
  Dense columns(inputs[2]), rows(inputs[3]), out({groups, m, n});
  if (columns.code || rows.code) return 2;
  if (const int code = products_by_sum(inputs[0], inputs[1], inputs[4], out.data())) return code;
  for (int64_t g = 0; g < groups; ++g)
    scale(out.data() + g * m * n, m, n, columns.data() + g * n, rows.data() + g * m);
  return out.into(outputs[0]);
}
