// Rows in groups, each group times its own matrix; a group's matrix is widened only when it has rows.
#include "sagebook_kernel.h"
#include "../../common/groups.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1) return 1;
  Dense out({inputs[0].shape[0], inputs[1].shape[2]});
  if (const int code = products_by_rows(inputs[0], inputs[1], inputs[2], out.data())) return code;
  return out.into(outputs[0]);
}
