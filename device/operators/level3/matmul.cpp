// A blocked matrix product: panels of B in the first cache, tiles of C in registers, the sum over k in blocks.
#include "sagebook_kernel.h"
#include "../common/gemm.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 2 || n_outputs != 1 || inputs[0].ndim != 2 || inputs[1].ndim != 2) return 1;
  return gemm(Matrix(inputs[0]), Matrix(inputs[1]), Matrix(outputs[0]), [](int64_t, vfloat v) { return v; });
}
