// A copy of var, then value into a view of it.
#include "sagebook_kernel.h"
#include "../../common/slices.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 2 || n_outputs != 1 || n_attributes != 6 || inputs[0].ndim != 2) return 1;
  if (const int code = copy_tensor(inputs[0], outputs[0])) return code;
  const auto number = [=](int i) { return static_cast<int64_t>(attributes[i]); };
  const Slice rows(outputs[0], 0, number(0), inputs[1].shape[0], number(2));
  const Slice both(*rows, 1, number(3), inputs[1].shape[1], number(5));
  return copy_tensor(inputs[1], *both);
}
