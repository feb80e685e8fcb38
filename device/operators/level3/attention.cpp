// softmax(q k^T / sqrt d) v. Keys and values are packed into panels once; then a thread takes a block of queries, keeps
// all its scores in cache, turns them into weights row by row and multiplies them with the values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sagebook_kernel.h"
#include "../common/exp.h"
#include "../common/gemm.h"

namespace {

constexpr int64_t MAX_QUERIES = 4 * MR;

// Turns `n` scores into exp(score - maximum) and the padding after them into 0; returns their sum.
double weigh(float *s, int64_t n, int64_t padded) {
  for (int64_t i = n; i < padded; ++i) s[i] = -__builtin_inff();
  vfloat top = splat(-__builtin_inff());
  for (int64_t i = 0; i < padded; i += W) top = larger(load(s + i), top);
  const float shift = largest_of(top);
  double total = 0;
  for (int64_t begin = 0; begin < padded; begin += 4096) {
    const int64_t end = begin + 4096 < padded ? begin + 4096 : padded;
    vfloat sum[2] = {};
    for (int64_t i = begin; i < end; i += 2 * W)
      for (int h = 0; h < 2; ++h) {
        const vfloat e = exp_lanes(load(s + i + h * W) - shift);
        store(s + i + h * W, e);
        sum[h] += e;
      }
    total += sum_of(sum[0] + sum[1]);
  }
  return total;
}

}  // namespace

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *, int64_t) {
  if (n_inputs != 3 || n_outputs != 1 || inputs[0].ndim != 2 || inputs[1].ndim != 2 || inputs[2].ndim != 2) return 1;
  const Matrix q(inputs[0]), k(inputs[1]), v(inputs[2]), out(outputs[0]);
  const int64_t s = q.rows, t = k.rows, d = q.columns;
  const int64_t key_panels = (t + NR - 1) / NR, value_panels = (d + NR - 1) / NR;
  const int64_t padded = key_panels * NR, wide = value_panels * NR;
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  // Few queries are cut finer, so that two threads and more have some.
  const int64_t block = s >= 4 * MAX_QUERIES ? MAX_QUERIES : s >= 2 * MAX_QUERIES ? 2 * MR : MR;
  std::vector<float> keys(padded * d), values(wide * t);

#pragma omp parallel if (s * t * d >= 32 * SB_PARALLEL)
  {
#pragma omp for schedule(static)
    for (int64_t p = 0; p < key_panels; ++p)
      pack_panel(k.at(p * NR, 0), k.across, k.down, d, t - p * NR < NR ? t - p * NR : NR, keys.data() + p * NR * d);
#pragma omp for schedule(static) collapse(2)
    for (int64_t p = 0; p < value_panels; ++p)
      for (int64_t begin = 0; begin < t; begin += KC)
        pack_panel(v.at(begin, p * NR), v.down, v.across, t - begin < KC ? t - begin : KC,
                   d - p * NR < NR ? d - p * NR : NR, values.data() + (p * t + begin) * NR);

    std::vector<float> queries(block * d), scores(block * padded), sums(block * wide);
    double total[MAX_QUERIES];
#pragma omp for schedule(dynamic)
    for (int64_t first = 0; first < s; first += block) {
      const int64_t rows = s - first < block ? s - first : block;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t l = 0; l < d; ++l) queries[i * d + l] = *q.at(first + i, l) * scale;
      for (int64_t p = 0; p < key_panels; ++p)
        strips(rows, [&](auto m, int64_t i) {
          constexpr int M = decltype(m)::value;
          vfloat acc[M][2] = {};
          multiply<M>(d, queries.data() + i * d, d, keys.data() + p * NR * d, NR, acc);
          for (int r = 0; r < M; ++r)
            for (int h = 0; h < 2; ++h) store(scores.data() + (i + r) * padded + p * NR + h * W, acc[r][h]);
        });
      for (int64_t i = 0; i < rows; ++i) total[i] = weigh(scores.data() + i * padded, t, padded);
      std::fill(sums.begin(), sums.end(), 0.0f);
      for (int64_t p = 0; p < value_panels; ++p)
        for (int64_t begin = 0; begin < t; begin += KC)
          strips(rows, [&](auto m, int64_t i) {
            constexpr int M = decltype(m)::value;
            vfloat acc[M][2] = {};
            multiply<M>(t - begin < KC ? t - begin : KC, scores.data() + i * padded + begin, padded,
                        values.data() + (p * t + begin) * NR, NR, acc);
            for (int r = 0; r < M; ++r)
              for (int h = 0; h < 2; ++h) {
                float *to = sums.data() + (i + r) * wide + p * NR + h * W;
                store(to, load(to) + acc[r][h]);
              }
          });
      for (int64_t i = 0; i < rows; ++i) {
        const float factor = static_cast<float>(1.0 / total[i]);
        for (int64_t l = 0; l < d; ++l) *out.at(first + i, l) = sums[i * wide + l] * factor;
      }
    }
  }
  return 0;
}
