// int8 rows in groups, each group times its own matrix, scaled by the group's column scales and the row's own.
#include "sagebook_kernel.h"
#include "../../common/scaled.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 5 || n_outputs != 1) return 1;
  const int64_t m = inputs[0].shape[0], n = inputs[1].shape[2];
  Dense columns(inputs[2]), rows(inputs[3]), out({m, n});
  if (columns.code || rows.code) return 2;
  if (const int code = products_by_rows(inputs[0], inputs[1], inputs[4], out.data())) return code;
  int64_t begin = 0;
  for (int64_t g = 0; g < inputs[4].shape[0]; ++g) {
    const int64_t end = end_of(inputs[4], g);
    scale(out.data() + begin * n, end - begin, n, columns.data() + g * n, rows.data() + begin);
    begin = end;
  }
  return out.into(outputs[0]);
}
