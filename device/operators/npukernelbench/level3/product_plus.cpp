// A product of half-precision matrices plus a matrix or a row, added in float and rounded once.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/matrices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1 || inputs[0].ndim != 2 || inputs[1].ndim != 2) return 1;
  Dense a(inputs[0]), b(inputs[1]), more(inputs[2]), c({a.size(0), b.size(1)});
  if (a.code || b.code || more.code || a.size(1) != b.size(0)) return 2;
  if (const int code = product(a.data(), b.data(), c.data(), a.size(0), a.size(1), b.size(1))) return code;
  sb_tensor pair[2] = {c.tensor(), more.tensor()};
  return with_float(outputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return map_blocks<float, T, 2>(pair, outputs[0], [](float x, float y) { return x + y; });
  });
}
