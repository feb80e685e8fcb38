// a + b with broadcasting: each input gets the output's axes, stretched ones with stride 0, and rows are added in lanes.
#include <vector>

#include "sagebook_kernel.h"
#include "../common/elements.h"

namespace {

// The strides of `t` along the output's axes: 0 where an axis is missing on the left or is stretched.
std::vector<int64_t> stretched(const sb_tensor &t, const sb_tensor &out) {
  std::vector<int64_t> strides(out.ndim, 0);
  const int64_t missing = out.ndim - t.ndim;
  for (int64_t d = 0; d < t.ndim; ++d)
    if (t.shape[d] != 1) strides[missing + d] = t.strides[d];
  return strides;
}

// One row; `sa` and `sb` are the steps along it.
void add_row(const float *a, int64_t sa, const float *b, int64_t sb, float *y, int64_t n) {
  int64_t i = 0;
  if (sa == 1 && sb == 1) {
    for (; i + 2 * W <= n; i += 2 * W) {
      store(y + i, load(a + i) + load(b + i));
      store(y + i + W, load(a + i + W) + load(b + i + W));
    }
  } else if (sa == 1 && sb == 0) {
    for (; i + W <= n; i += W) store(y + i, load(a + i) + splat(*b));
  } else if (sa == 0 && sb == 1) {
    for (; i + W <= n; i += W) store(y + i, splat(*a) + load(b + i));
  }
  for (; i < n; ++i) y[i] = a[i * sa] + b[i * sb];
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 2 || n_outputs != 1) return 1;
  const sb_tensor &out = outputs[0];
  const float *a = static_cast<const float *>(inputs[0].data), *b = static_cast<const float *>(inputs[1].data);
  float *y = static_cast<float *>(out.data);
  const int64_t total = Places(out, out.ndim).count;
  const auto same_dense = [&](const sb_tensor &t) { return dense(t) && Places(t, t.ndim).count == total; };
  if (dense(out) && same_dense(inputs[0]) && same_dense(inputs[1])) {
    constexpr int64_t PIECE = 8192;
#pragma omp parallel for schedule(static) if (total >= 2 * SB_PARALLEL)
    for (int64_t i = 0; i < total; i += PIECE) add_row(a + i, 1, b + i, 1, y + i, total - i < PIECE ? total - i : PIECE);
    return 0;
  }
  const int64_t n = out.ndim > 0 ? out.shape[out.ndim - 1] : 1;
  const std::vector<int64_t> sa = stretched(inputs[0], out), sb = stretched(inputs[1], out);
  const int64_t la = out.ndim > 0 ? sa.back() : 0, lb = out.ndim > 0 ? sb.back() : 0;
  const int64_t step = out.ndim > 0 ? out.strides[out.ndim - 1] : 1;
  const Places place_a({nullptr, out.ndim, out.shape, sa.data(), SB_FLOAT32}, out.ndim - 1);
  const Places place_b({nullptr, out.ndim, out.shape, sb.data(), SB_FLOAT32}, out.ndim - 1);
  const Places place_y(out, out.ndim - 1);
#pragma omp parallel for schedule(static) if (total >= 2 * SB_PARALLEL)
  for (int64_t r = 0; r < place_y.count; ++r) {
    const float *ra = a + place_a(r), *rb = b + place_b(r);
    float *ry = y + place_y(r);
    if (step == 1 || n == 1) {
      add_row(ra, la, rb, lb, ry, n);
    } else {
      for (int64_t i = 0; i < n; ++i) ry[i * step] = ra[i * la] + rb[i * lb];
    }
  }
  return 0;
}
