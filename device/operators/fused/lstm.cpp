// A recurrent layer: the products with all inputs at once, then step by step the one with the state, and the gates.
#include "sagebook_kernel.h"
#include "../common/matrices.h"
#include "../common/rowwise.h"

namespace {

inline vfloat tanh_lanes(vfloat x) {
  // tanh(x) = x (1 + x^2 p) near zero, where 2 sigmoid(2 x) - 1 loses digits.
  const vfloat z = x * x;
  vfloat p = splat(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const vfloat small = p * z * x + x, far = 2.0f * sigmoid_lanes(2.0f * x) - 1.0f;
  return z < 0.39f ? small : far;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 6 || n_outputs != 2) return 1;
  Dense x(inputs[0]), h(inputs[1]), c(inputs[2]), w_x(inputs[3]), w_h(inputs[4]), bias(inputs[5]);
  if (x.code || h.code || c.code || w_x.code || w_h.code || bias.code) return 2;
  const int64_t steps = x.size(0), b = x.size(1), i = x.size(2), n = h.size(1);
  Dense from_x({steps * b, 4 * n}), from_h({b, 4 * n}), out({steps, b, n});
  if (const int code = product(x.data(), w_x.data(), from_x.data(), steps * b, i, 4 * n, true)) return code;
  const float *state = h.data();
  for (int64_t step = 0; step < steps; ++step) {
    if (const int code = product(state, w_h.data(), from_h.data(), b, n, 4 * n, true)) return code;
    float *next = out.data() + step * b * n;
    for (int64_t row = 0; row < b; ++row) {
      float *gates = from_h.data() + row * 4 * n, *cell = c.data() + row * n, *shown = next + row * n;
      const float *more = from_x.data() + (step * b + row) * 4 * n;
      for (int64_t j = 0; j < 4 * n; ++j) gates[j] += more[j] + bias.data()[j];
      over_lanes(gates, 2 * n, [](int64_t, vfloat v) { return sigmoid_lanes(v); });
      over_lanes(gates + 2 * n, n, [](int64_t, vfloat v) { return tanh_lanes(v); });
      over_lanes(gates + 3 * n, n, [](int64_t, vfloat v) { return sigmoid_lanes(v); });
      for (int64_t j = 0; j < n; ++j) cell[j] = gates[n + j] * cell[j] + gates[j] * gates[2 * n + j];
      std::memcpy(shown, cell, sizeof(float) * n);
      over_lanes(shown, n, [](int64_t, vfloat v) { return tanh_lanes(v); });
      for (int64_t j = 0; j < n; ++j) shown[j] *= gates[3 * n + j];
    }
    state = next;
  }
  if (const int code = out.into(outputs[0])) return code;
  return c.into(outputs[1]);
}
