#pragma once
// Vectors of float through GCC's portable vector types: as wide as the machine has, 16 lanes with AVX-512, 4 on NEON.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#if defined(__AVX512F__)
#include <immintrin.h>
#define SB_VECTOR_BYTES 64
#elif defined(__AVX__)
#define SB_VECTOR_BYTES 32
#else
#define SB_VECTOR_BYTES 16
#endif

namespace {

typedef float vfloat __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef int32_t vint __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef uint32_t vuint __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef double vdouble __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef float vhalf __attribute__((vector_size(SB_VECTOR_BYTES / 2)));

constexpr int64_t W = SB_VECTOR_BYTES / 4;

inline vfloat splat(float x) { return x - vfloat{}; }

inline vfloat load(const float *p) {
  vfloat v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float *p, vfloat v) { std::memcpy(p, &v, sizeof v); }

// The first `n` < W lanes; the others hold `fill` after a load and are not written by a store.
inline vfloat load_part(const float *p, int64_t n, float fill) {
#if defined(__AVX512F__)
  return (vfloat)_mm512_mask_loadu_ps((__m512)splat(fill), (__mmask16)((1u << n) - 1u), p);
#else
  vfloat v = splat(fill);
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}

inline void store_part(float *p, vfloat v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

// W / 2 floats, widened exactly.
inline vdouble load_wide(const float *p) {
  vhalf h;
  std::memcpy(&h, p, sizeof h);
  return __builtin_convertvector(h, vdouble);
}

inline double sum_of(vdouble v) {
  double s = 0;
  for (int64_t i = 0; i < W / 2; ++i) s += v[i];
  return s;
}

inline double sum_of(vfloat v) {
  double s = 0;
  for (int64_t i = 0; i < W; ++i) s += v[i];
  return s;
}

// b where a is NaN, so a NaN already in b stays and one in a is dropped.
inline vfloat larger(vfloat a, vfloat b) { return a > b ? a : b; }

inline float largest_of(vfloat v) {
  float m = v[0];
  for (int64_t i = 1; i < W; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

}  // namespace
