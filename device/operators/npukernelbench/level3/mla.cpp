// Latent attention over a paged cache: a sequence's rows are gathered and widened once for all of its heads.
#include <cmath>

#include "sagebook_kernel.h"
#include "../../common/attend.h"

namespace {

inline int32_t whole(const sb_tensor &t, int64_t i, int64_t j) {
  return static_cast<const int32_t *>(t.data)[i * t.strides[0] + j * (t.ndim > 1 ? t.strides[1] : 0)];
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 6 || n_outputs != 1) return 1;
  Dense q(inputs[0]), turned(inputs[1]), cache(inputs[2]), cache_turned(inputs[3]);
  Dense out({q.size(0), q.size(1), q.size(2)});
  if (q.code || turned.code || cache.code || cache_turned.code) return 2;
  const sb_tensor &table = inputs[4], &lengths = inputs[5];
  const int64_t batch = table.shape[0], steps = q.size(0) / batch, rows = steps * q.size(1), size = cache.size(1);
  const int64_t d = q.size(2), r = turned.size(2), width = d + r;
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)));
  int failed = 0;
#pragma omp parallel for schedule(dynamic) if (batch > 1 && batch * rows * size * width >= 64 * SB_PARALLEL)
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t length = whole(lengths, i, 0);
    std::vector<float> keys(length * width), values(length * d), queries(rows * width);
    for (int64_t j = 0; j < length; ++j) {
      const int64_t row = whole(table, i, j / size) * size + j % size;
      std::memcpy(values.data() + j * d, cache.data() + row * d, sizeof(float) * d);
      std::memcpy(keys.data() + j * width, cache.data() + row * d, sizeof(float) * d);
      std::memcpy(keys.data() + j * width + d, cache_turned.data() + row * r, sizeof(float) * r);
    }
    for (int64_t m = 0; m < rows; ++m) {
      std::memcpy(queries.data() + m * width, q.data() + (i * rows + m) * d, sizeof(float) * d);
      std::memcpy(queries.data() + m * width + d, turned.data() + (i * rows + m) * r, sizeof(float) * r);
    }
    const int code = attend(queries.data(), keys.data(), values.data(), out.data() + i * rows * d, rows, length, width,
                            d, scale, no_mask);
#pragma omp critical
    failed = code ? code : failed;
  }
  return failed ? failed : out.into(outputs[0]);
}
