// A product of half-precision matrices: both widened once, multiplied in float, rounded once.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/matrices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 2 || n_outputs != 1 || inputs[0].ndim != 2 || inputs[1].ndim != 2) return 1;
  Dense a(inputs[0]), b(inputs[1]), c({a.size(0), b.size(1)});
  if (a.code || b.code || a.size(1) != b.size(0)) return 2;
  if (const int code = product(a.data(), b.data(), c.data(), a.size(0), a.size(1), b.size(1))) return code;
  return c.into(outputs[0]);
}
