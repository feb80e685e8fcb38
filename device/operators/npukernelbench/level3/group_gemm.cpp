// A list of products, one after the other, each shared out by tiles; scaled and added to in float, rounded once.
#include "sagebook_kernel.h"
#include "../../common/dense.h"
#include "../../common/matrices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 * n_outputs + 2) return 1;
  const sb_tensor &alphas = inputs[3 * n_outputs], &betas = inputs[3 * n_outputs + 1];
  for (int64_t g = 0; g < n_outputs; ++g) {
    Dense a(inputs[g]), b(inputs[n_outputs + g]), c(inputs[2 * n_outputs + g]), sum({a.size(0), b.size(1)});
    if (a.code || b.code || c.code || a.size(1) != b.size(0)) return 2;
    if (const int code = product(a.data(), b.data(), sum.data(), a.size(0), a.size(1), b.size(1))) return code;
    const float alpha = static_cast<const float *>(alphas.data)[g * alphas.strides[0]];
    const float beta = static_cast<const float *>(betas.data)[g * betas.strides[0]];
    const sb_tensor pair[2] = {sum.tensor(), c.tensor()};
    const int code = with_float(outputs[g].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return map_blocks<float, T, 2>(pair, outputs[g], [=](float x, float y) { return alpha * x + beta * y; });
    });
    if (code) return code;
  }
  return 0;
}
