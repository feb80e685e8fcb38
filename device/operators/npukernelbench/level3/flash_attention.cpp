// Attention in blocks of queries: their scores stay in the second cache between the two products.
#include "sagebook_kernel.h"
#include "../../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 1 || n_attributes != 1) return 1;
  Dense q(inputs[0]), k(inputs[1]), v(inputs[2]), out({q.size(0), q.size(1), q.size(2)});
  if (q.code || k.code || v.code) return 2;
  const int64_t batch = q.size(0), s = q.size(1), t = k.size(1), d = q.size(2), block = 64;
  const int64_t blocks = (s + block - 1) / block;
#pragma omp parallel for schedule(dynamic) if (batch * blocks > 1 && batch * s * t * d >= 64 * SB_PARALLEL)
  for (int64_t job = 0; job < batch * blocks; ++job) {
    const int64_t b = job / blocks, first = job % blocks * block, rows = s - first < block ? s - first : block;
    const int64_t at = (b * s + first) * d;
    attend(q.data() + at, k.data() + b * t * d, v.data() + b * t * d, out.data() + at, rows, t, d, d,
           static_cast<float>(attributes[0]), no_mask);
  }
  return out.into(outputs[0]);
}
