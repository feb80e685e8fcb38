// A blocked matrix product whose bias and activation are applied while the last block of the sum is in registers.
#include "sagebook_kernel.h"
#include "../common/gemm.h"
#include "../common/normal.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1 || inputs[0].ndim != 2 || inputs[1].ndim != 2) return 1;
  const Vector bias(inputs[2]);
  const int64_t n = inputs[1].shape[1];
  return gemm(Matrix(inputs[0]), Matrix(inputs[1]), Matrix(outputs[0]), [&](int64_t j, vfloat v) {
    return gelu_lanes(v + (n - j >= W ? load(bias.data + j) : load_part(bias.data + j, n - j, 0)));
  });
}
