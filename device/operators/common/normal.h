#pragma once
// The normal distribution in float lanes.
#include "../common/exp.h"

namespace {

// x * Phi(x). For y = |x| the upper tail Q(y) = erfc(y / sqrt 2) / 2 is exp(-y^2 / 2) * t * P(t), t = 1 / (1 + 0.35 y):
// P is a minimax fit of degree 8, relative error of Q below 4e-8 before rounding. Phi is Q or 1 - Q, so nothing cancels.
inline vfloat gelu_lanes(vfloat x) {
  const vfloat y = x < 0 ? -x : x;
  const vfloat t = 1.0f / (1.0f + 0.35f * y);
  vfloat p = splat(-0.02910899331823352f);
  p = p * t + 0.14378851140174717f;
  p = p * t - 0.25532783670500775f;
  p = p * t + 0.1587226154189994f;
  p = p * t - 0.02279113092990895f;
  p = p * t + 0.10536934286124468f;
  p = p * t + 0.11986905577758933f;
  p = p * t + 0.13985670841015835f;
  p = p * t + 0.13962171125812034f;
  const vfloat q = exp_lanes(-0.5f * y * y) * (p * t);
  return x * (x < 0 ? q : 1.0f - q);
}

}  // namespace
