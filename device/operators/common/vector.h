#pragma once
// One vector of which `n` elements count, `step` apart: shared out in chunks of fixed length, whose results are merged
// in order, so that neither the number of threads nor their turns change a bit.
#include <vector>

#include "../common/blocks.h"

namespace {

constexpr int64_t CHUNK = 8192;

// Calls chunk(begin, end, result) for each chunk, then merge(result) for each in order.
template <class Result, class Chunk, class Merge>
void in_chunks(int64_t n, Chunk chunk, Merge merge) {
  const int64_t count = (n + CHUNK - 1) / CHUNK;
  std::vector<Result> results(count);
#pragma omp parallel for schedule(static) if (n >= 4 * SB_PARALLEL)
  for (int64_t c = 0; c < count; ++c) chunk(c * CHUNK, c * CHUNK + CHUNK < n ? c * CHUNK + CHUNK : n, results[c]);
  for (const Result &result : results) merge(result);
}

// The sum of of(x) in double over n elements, `step` apart.
template <class T, class Of>
double sum_vector(const T *x, int64_t n, int64_t step, Of of) {
  constexpr int LANES = 16;
  double total = 0;
  in_chunks<double>(
      n,
      [=](int64_t begin, int64_t end, double &result) {
        double lanes[LANES] = {};
        float block[BLOCK];
        for (int64_t i = begin; i < end; i += BLOCK) {
          const int64_t length = end - i < BLOCK ? end - i : BLOCK;
          read_block(x + i * step, step, block, length);
          for (int64_t j = length; j < BLOCK; ++j) block[j] = 0;
          for (int64_t j = 0; j < BLOCK; j += LANES)
            for (int l = 0; l < LANES; ++l) lanes[l] += of(static_cast<double>(block[j + l]));
        }
        for (double lane : lanes) result += lane;
      },
      [&](double result) { total += result; });
  return total;
}

struct Best {
  int64_t at = 0;
};

// The first index of the best size(x); `better(a, b)` says that a beats b. Sizes are compared as S.
template <class S, class T, class Size, class Better>
int64_t best_of_vector(const T *x, int64_t n, int64_t step, Size size, Better better) {
  constexpr int LANES = 16;
  int64_t winner = 0;
  in_chunks<Best>(
      n,
      [=](int64_t begin, int64_t end, Best &result) {
        S top = size(x[begin * step]);
        int64_t block = begin;  // the first block that holds the best size so far
        for (int64_t i = begin; i < end; i += BLOCK) {
          const int64_t length = end - i < BLOCK ? end - i : BLOCK;
          S sizes[BLOCK], lanes[LANES];
          T taken[BLOCK];
          if (length == BLOCK && step == 1) {
            std::memcpy(taken, x + i, sizeof taken);
          } else {
            for (int64_t j = 0; j < BLOCK; ++j) taken[j] = x[(i + (j < length ? j : 0)) * step];
          }
          for (int64_t j = 0; j < BLOCK; ++j) sizes[j] = size(taken[j]);
          for (int l = 0; l < LANES; ++l) lanes[l] = sizes[l];
          for (int64_t j = LANES; j < BLOCK; j += LANES)
            for (int l = 0; l < LANES; ++l) lanes[l] = better(sizes[j + l], lanes[l]) ? sizes[j + l] : lanes[l];
          S here = lanes[0];
          for (int l = 1; l < LANES; ++l) here = better(lanes[l], here) ? lanes[l] : here;
          if (better(here, top)) {
            top = here;
            block = i;
          }
        }
        result.at = block;
        while (better(size(x[result.at * step]), top) || better(top, size(x[result.at * step]))) ++result.at;
      },
      [&](const Best &result) {
        if (better(size(x[result.at * step]), size(x[winner * step]))) winner = result.at;
      });
  return winner;
}

}  // namespace
