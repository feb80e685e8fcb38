#pragma once
// Functions of one float in plain arithmetic, which a compiler turns into lanes: no branches, no calls.
#include "../common/formats.h"

namespace {

// 1.5 * 2^23: added to a small number, it leaves the nearest integer in the mantissa's low bits.
constexpr float ROUNDER = 12582912.0f;

// p(r) = exp(r) for |r| <= ln(2) / 2, relative error below 1e-7.
inline float exp_part(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}

// exp(x): infinite above 88.72, 0 below -87.3, NaN stays.
inline float exp_of(float x) {
  float c = x < -87.3f ? -87.3f : x;
  c = c > 88.72f ? 88.72f : c;
  const float t = c * 1.44269504088896341f + ROUNDER;
  const float n = t - ROUNDER;
  // ln 2 in two parts, the first with so few bits that n times it is exact.
  const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
  // Half of 2^n, which is finite for n = 128, too.
  const float half_scale = as_float((as_bits(t) << 23) + 0x3f000000u);
  const float y = exp_part(r) * half_scale * 2.0f;
  const float low = x < -87.3f ? 0.0f : y;
  return x > 88.72f ? __builtin_inff() : low;
}

// base^x from log2(base); the product is taken in double, since its error is magnified by the exponential.
inline float power_of(double log2_base, float x) {
  const double t = log2_base * static_cast<double>(x);
  double c = t < -126.0 ? -126.0 : t;
  c = c > 128.0 ? 128.0 : c;
  const double n = (c + 6755399441055744.0) - 6755399441055744.0;
  const float p = exp_part(static_cast<float>((c - n) * 0.69314718055994531));
  const float half_scale = as_float(static_cast<uint32_t>(static_cast<int32_t>(n) + 126) << 23);
  return t < -126.0 ? 0.0f : p * half_scale * 2.0f;
}

inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// exp(x) - 1: near 0 the series without its first term, which the subtraction would drop.
inline float expm1_of(float x) {
  float p = 2.48015873e-5f;
  p = p * x + 1.98412698e-4f;
  p = p * x + 1.38888889e-3f;
  p = p * x + 8.33333333e-3f;
  p = p * x + 4.16666667e-2f;
  p = p * x + 1.66666667e-1f;
  p = p * x + 0.5f;
  const float near = p * (x * x) + x, far = exp_of(x) - 1.0f;
  return x > -0.35f && x < 0.35f ? near : far;
}

// log(1 + x) for x > -1: the logarithm of the rounded sum, and what rounding it dropped, as a share of it.
inline float log1p_of(float x) {
  const float u = 1.0f + x, dropped = (x - (u - 1.0f)) / u;
  // u = 2^e (1 + r) with 1 + r between the roots of 1/2 and 2.
  const int32_t e = static_cast<int32_t>(as_bits(u) - 0x3f3504f3u) >> 23;
  const float r = as_float(as_bits(u) - (static_cast<uint32_t>(e) << 23)) - 1.0f, z = r * r;
  float p = 7.0376836292e-2f;
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  const float n = static_cast<float>(e);
  const float low = p * r * z - n * 2.12194440e-4f - 0.5f * z + dropped;
  return (low + r) + n * 0.693359375f;
}

// The upper tail of the normal distribution for y >= 0: exp(-y^2 / 2) t P(t), t = 1 / (1 + 0.35 y), P a minimax fit.
inline float normal_tail(float y) {
  const float t = 1.0f / (1.0f + 0.35f * y);
  float p = -0.02910899331823352f;
  p = p * t + 0.14378851140174717f;
  p = p * t - 0.25532783670500775f;
  p = p * t + 0.1587226154189994f;
  p = p * t - 0.02279113092990895f;
  p = p * t + 0.10536934286124468f;
  p = p * t + 0.11986905577758933f;
  p = p * t + 0.13985670841015835f;
  p = p * t + 0.13962171125812034f;
  return exp_of(-0.5f * y * y) * (p * t);
}

// x * Phi(x), without cancellation on either side.
inline float gelu_erf_of(float x) {
  const float y = x < 0.0f ? -x : x, q = normal_tail(y);
  return x * (x < 0.0f ? q : 1.0f - q);
}

// x * sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3): x / 2 (1 + tanh u).
inline float gelu_tanh_of(float x) {
  return x / (1.0f + exp_of(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
}

// erf(x): the series up to |x| = 0.75, beyond it 1 less both tails.
inline float erf_of(float x) {
  const float z = x * x;
  float p = 1.6462114e-6f;
  p = p * z - 1.49256503e-5f;
  p = p * z + 1.20553329e-4f;
  p = p * z - 8.54832702e-4f;
  p = p * z + 5.22397762e-3f;
  p = p * z - 2.68661706e-2f;
  p = p * z + 1.12837917e-1f;
  p = p * z - 3.76126389e-1f;
  p = p * z + 1.12837917f;
  const float y = x < 0.0f ? -x : x;
  const float beyond = 1.0f - 2.0f * normal_tail(1.41421356237f * y);
  const float far = x < 0.0f ? -beyond : beyond;
  return y < 0.75f ? p * x : far;
}

}  // namespace
