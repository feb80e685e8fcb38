// The k best along an axis. Elements are whole numbers here: half bits mapped so that their order is that of the floats,
// the index below. One scan keeps the best k in order; where k is large, a partial sort does.
#include <algorithm>
#include <vector>

#include "sagebook_kernel.h"
#include "../../common/dtypes.h"
#include "../../common/rows.h"

namespace {

// Larger for a larger half number; flipped where the smallest are wanted.
inline uint32_t rank_of(uint16_t bits, uint32_t flip) {
  const uint32_t ordered = bits & 0x8000u ? static_cast<uint16_t>(~bits) : bits | 0x8000u;
  return (ordered ^ flip) & 0xffffu;
}

// A key holds the rank above, and below it the index so that the lower index is the larger key.
inline uint64_t key_of(uint32_t rank, int64_t index) {
  return uint64_t{rank} << 40 | (0xffffffffffull - static_cast<uint64_t>(index));
}

void best(const uint16_t *x, int64_t step, int64_t n, int64_t k, uint32_t flip, std::vector<uint64_t> &keys) {
  keys.clear();
  if (k > 32) {
    for (int64_t i = 0; i < n; ++i) keys.push_back(key_of(rank_of(x[i * step], flip), i));
    std::partial_sort(keys.begin(), keys.begin() + k, keys.end(), std::greater<uint64_t>());
    keys.resize(k);
    return;
  }
  uint32_t worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t rank = rank_of(x[i * step], flip);
    const bool full = static_cast<int64_t>(keys.size()) == k;
    if (full && rank <= worst) continue;
    const uint64_t key = key_of(rank, i);
    if (full) keys.pop_back();
    keys.insert(std::upper_bound(keys.begin(), keys.end(), key, std::greater<uint64_t>()), key);
    worst = static_cast<uint32_t>(keys.back() >> 40);
  }
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 1 || n_outputs != 2 || n_attributes != 3 || inputs[0].dtype != SB_FLOAT16) return 1;
  const sb_tensor &x = inputs[0];
  const int64_t k = static_cast<int64_t>(attributes[0]), dim = static_cast<int64_t>(attributes[1]), n = x.shape[dim];
  const uint32_t flip = attributes[2] != 0 ? 0 : 0xffffu;
  if (k < 1 || k > n) return 2;
  // Every axis but the chosen one.
  std::vector<int64_t> shape, steps[3];
  for (int64_t d = 0; d < x.ndim; ++d) {
    if (d == dim) continue;
    shape.push_back(x.shape[d]);
    steps[0].push_back(x.strides[d]);
    for (int o = 0; o < 2; ++o) steps[o + 1].push_back(outputs[o].strides[d]);
  }
  sb_tensor others[3] = {x, outputs[0], outputs[1]};
  for (int t = 0; t < 3; ++t) {
    others[t].ndim = static_cast<int64_t>(shape.size());
    others[t].shape = shape.data();
    others[t].strides = steps[t].data();
  }
  const Places from(others[0], others[0].ndim), to(others[1], others[1].ndim), at(others[2], others[2].ndim);
  const int64_t step = x.strides[dim], value_step = outputs[0].strides[dim], index_step = outputs[1].strides[dim];
#pragma omp parallel if (from.count * n >= SB_PARALLEL)
  {
    std::vector<uint64_t> keys;
#pragma omp for schedule(static)
    for (int64_t r = 0; r < from.count; ++r) {
      const auto *row = static_cast<const uint16_t *>(x.data) + from(r);
      best(row, step, n, k, flip, keys);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t index = static_cast<int64_t>(0xffffffffffull - (keys[i] & 0xffffffffffull));
        static_cast<uint16_t *>(outputs[0].data)[to(r) + i * value_step] = row[index * step];
        static_cast<int64_t *>(outputs[1].data)[at(r) + i * index_step] = index;
      }
    }
  }
  return 0;
}
