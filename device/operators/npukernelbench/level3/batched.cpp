// Products of half-precision batches: widened once; batches shared out where there are many, tiles where there are few.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/matrices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 2 || n_outputs != 1 || inputs[0].ndim != 3 || inputs[1].ndim != 3) return 1;
  Dense a(inputs[0]), b(inputs[1]), c({a.size(0), a.size(1), b.size(2)});
  if (a.code || b.code || a.size(2) != b.size(1) || a.size(0) != b.size(0)) return 2;
  const int64_t count = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  // A product within a parallel loop runs on its own thread alone.
#pragma omp parallel for schedule(static) if (count >= 4 && count * m * k * n >= 64 * SB_PARALLEL)
  for (int64_t i = 0; i < count; ++i) product(a.data() + i * m * k, b.data() + i * k * n, c.data() + i * m * n, m, k, n);
  return c.into(outputs[0]);
}
