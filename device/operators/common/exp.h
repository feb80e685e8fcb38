#pragma once
// exp for arguments up to 88, in float lanes; relative error below 1e-7, NaN stays, 0 below -87.33.
#include "../common/simd.h"

namespace {

inline vfloat exp_lanes(vfloat x) {
  const vfloat low = splat(-87.33f);
  const vfloat c = x < low ? low : x;
  // Adding 1.5 * 2^23 rounds c / ln 2 to an integer n, whose low bits then sit in the mantissa.
  const vfloat t = c * 1.44269504088896341f + 12582912.0f;
  const vfloat n = t - 12582912.0f;
  // ln 2 in two parts, the first with so few bits that n times it is exact.
  const vfloat r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
  vfloat p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const vfloat scale = (vfloat)(((vuint)t << 23) + 0x3f800000u);
  return x < low ? vfloat{} : p * scale;
}

}  // namespace
