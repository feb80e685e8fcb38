// Queries and keys turned in float; caches copied whole, their slots written last.
#include "sagebook_kernel.h"
#include "../common/dense.h"

namespace {

void turn(Dense &x, const float *cosine, const float *sine) {
  const int64_t t = x.size(0), heads = x.size(1), half = x.size(2) / 2;
#pragma omp parallel for schedule(static) if (t * heads * half >= SB_PARALLEL)
  for (int64_t i = 0; i < t; ++i)
    for (int64_t h = 0; h < heads; ++h) {
      float *first = x.data() + (i * heads + h) * 2 * half, *second = first + half;
      for (int64_t j = 0; j < half; ++j) {
        const float a = first[j], b = second[j], c = cosine[i * half + j], s = sine[i * half + j];
        first[j] = a * c - b * s;
        second[j] = b * c + a * s;
      }
    }
}

// One index of the first axis, that axis left out.
sb_tensor slice(const sb_tensor &t, int64_t i) {
  sb_tensor part = t;
  part.data = static_cast<uint16_t *>(t.data) + i * t.strides[0];
  part.ndim -= 1;
  part.shape += 1;
  part.strides += 1;
  return part;
}

int copy(const sb_tensor &from, const sb_tensor &to) {
  return map_blocks<uint16_t, uint16_t, 1>(&from, to, [](uint16_t bits) { return bits; });
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 8 || n_outputs != 3) return 1;
  Dense q(inputs[0]), k(inputs[1]), cosine(inputs[3]), sine(inputs[4]);
  if (q.code || k.code || cosine.code || sine.code) return 2;
  turn(q, cosine.data(), sine.data());
  turn(k, cosine.data(), sine.data());
  int code = q.into(outputs[0]);
  for (int c = 0; c < 2; ++c) code = code ? code : copy(inputs[6 + c], outputs[1 + c]);
  const sb_tensor keys = k.tensor(), &slots = inputs[5];
  for (int64_t i = 0; i < k.size(0) && !code; ++i) {
    const int64_t slot = static_cast<const int64_t *>(slots.data)[i * slots.strides[0]];
    sb_tensor key = keys;
    key.data = static_cast<float *>(keys.data) + i * keys.strides[0];
    key.ndim -= 1;
    key.shape += 1;
    key.strides += 1;
    code = map_blocks<float, half, 1>(&key, slice(outputs[1], slot), [](float x) { return x; });
    code = code ? code : copy(slice(inputs[2], i), slice(outputs[2], slot));
  }
  return code;
}
