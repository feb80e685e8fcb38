#pragma once
// Half formats as floats: exact when widened; when narrowed, rounded to nearest, ties to even, NaN kept.
#include <cstdint>
#include <cstring>
#if defined(__F16C__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace {

struct half {
  uint16_t bits;
};
struct bfloat {
  uint16_t bits;
};
struct complex {
  float re, im;
};

// What an element of type T is computed in.
template <class T>
struct Computed {
  using type = T;
};
template <>
struct Computed<half> {
  using type = float;
};
template <>
struct Computed<bfloat> {
  using type = float;
};

inline float as_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline uint32_t as_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float to_float(half h) {
  // The exponent moves from bias 15 to 127 by a product, which also makes subnormal numbers normal.
  const uint32_t top = (h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00u) return as_float(top | 0x7f800000u | (rest << 13));
  return as_float(top | as_bits(as_float(rest << 13) * 0x1p112f));
}

inline float to_float(bfloat b) { return as_float(uint32_t{b.bits} << 16); }

inline half to_half(float x) {
  const uint32_t all = as_bits(x), top = all >> 16 & 0x8000u, rest = all & 0x7fffffffu;
  uint32_t h;
  if (rest > 0x7f800000u) {
    h = 0x7e00u;
  } else if (rest >= 0x47800000u) {  // 65536 and more
    h = 0x7c00u;
  } else if (rest < 0x38800000u) {  // below 2^-14: the sum with 0.5 rounds to a multiple of 2^-24
    h = as_bits(as_float(rest) + 0.5f) - 0x3f000000u;
  } else {
    h = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;
  }
  return {static_cast<uint16_t>(top | h)};
}

inline bfloat to_bfloat(float x) {
  const uint32_t all = as_bits(x);
  const uint32_t rounded = (all + 0x7fffu + (all >> 16 & 1u)) >> 16, quiet = all >> 16 | 0x40u;
  return {static_cast<uint16_t>((all & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

template <class T>
inline void widen(const T *from, T *to, int64_t n) {
  std::memcpy(to, from, sizeof(T) * n);
}

inline void widen(const half *from, float *to, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from + i))));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
#endif
  for (; i < n; ++i) to[i] = to_float(from[i]);
}

inline void widen(const bfloat *from, float *to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

template <class T>
inline void narrow(const T *from, T *to, int64_t n) {
  std::memcpy(to, from, sizeof(T) * n);
}

inline void narrow(const float *from, half *to, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to + i),
                        _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) to[i] = to_half(from[i]);
}

inline void narrow(const float *from, bfloat *to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_bfloat(from[i]);
}

}  // namespace
