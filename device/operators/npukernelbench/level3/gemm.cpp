// alpha a b + beta c: the blocked product, scaled and added to where it lies in the output.
#include "sagebook_kernel.h"
#include "../../common/blocks.h"
#include "../../common/gemm.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 3 || n_outputs != 1 || n_attributes != 2) return 1;
  const vfloat alpha = splat(static_cast<float>(attributes[0]));
  const Matrix out(outputs[0]);
  if (const int code = gemm(Matrix(inputs[0]), Matrix(inputs[1]), out, [=](int64_t, vfloat v) { return alpha * v; }))
    return code;
  const float beta = static_cast<float>(attributes[1]);
  const sb_tensor pair[2] = {outputs[0], inputs[2]};
  return map_blocks<float, float, 2>(pair, outputs[0], [beta](float x, float c) { return x + beta * c; });
}
