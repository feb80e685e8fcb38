// An int8 product, exact in float while sums stay below 2^24, scaled in float and rounded once.
#include "sagebook_kernel.h"
#include "../../common/scaled.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 1) return 1;
  Dense a(inputs[0]), b(inputs[1]), columns(inputs[2]), rows(inputs[3]), out({a.size(0), b.size(1)});
  if (a.code || b.code || columns.code || rows.code || a.size(1) != b.size(0)) return 2;
  if (const int code = product(a.data(), b.data(), out.data(), a.size(0), a.size(1), b.size(1))) return code;
  scale(out.data(), a.size(0), b.size(1), columns.data(), rows.data());
  return out.into(outputs[0]);
}
