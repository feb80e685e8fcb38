// x (w + offset), then each column times its scale: the scale never touches a weight that is rounded.
#include "sagebook_kernel.h"
#include "../common/matrices.h"
#include "../common/dense.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 4 || n_outputs != 1) return 1;
  Dense x(inputs[0]), w(inputs[1]), scale(inputs[2]), offset(inputs[3]);
  if (x.code || w.code || scale.code || offset.code || x.size(2) != w.size(0)) return 2;
  const int64_t m = x.size(0) * x.size(1), k = x.size(2), n = w.size(1);
  Dense out({x.size(0), x.size(1), n});
#pragma omp parallel for schedule(static) if (k * n >= SB_PARALLEL)
  for (int64_t l = 0; l < k; ++l)
    for (int64_t j = 0; j < n; ++j) w.data()[l * n + j] += offset.data()[j];
  if (const int code = product(x.data(), w.data(), out.data(), m, k, n)) return code;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) out.data()[i * n + j] *= scale.data()[j];
  return out.into(outputs[0]);
}
