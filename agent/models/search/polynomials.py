"""Functions of the mathematical library as C++ templates over one float or one vector of floats.

Sources: exp and log after S. Moshier's Cephes (`expf`, `logf`), erf and tanh the rational fits of Eigen and XLA, and
erfc a fit made for this project. The errors in the comments were measured against double.
"""

from __future__ import annotations

from collections.abc import Mapping

BITS = """
inline int32_t to_int(float x) { return static_cast<int32_t>(x); }
inline float to_float(int32_t x) { return static_cast<float>(x); }
inline float from_bits(int32_t x) { return __builtin_bit_cast(float, x); }
inline int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
"""

BITS_VECTOR = """
inline IntVec to_int(Vec x) { return __builtin_convertvector(x, IntVec); }
inline Vec to_float(IntVec x) { return __builtin_convertvector(x, Vec); }
inline Vec from_bits(IntVec x) { return reinterpret_cast<Vec>(x); }
inline IntVec bits_of(Vec x) { return reinterpret_cast<IntVec>(x); }
"""

_EXP = """
// exp(x) = 2^n exp(r), |r| <= ln(2)/2, with a polynomial for exp(r): within 2 units in the last place. 2^n is applied
// in two halves, so that results run into 0 and infinity as exp does.
template <class T>
inline T exp_poly(T x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const auto n = to_int(x * 1.44269504f + (x < 0.0f ? T{} - 0.5f : T{} + 0.5f));
  const T whole = to_float(n);
  const T r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  T p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const auto half = n >> 1;
  return p * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}
"""

_ERF = """
// erf(x) = x P(x^2) / Q(x^2), x clamped to [-4, 4], where float erf is 1 already: within 3e-7.
template <class T>
inline T erf_poly(T x) {
  x = x > 4.0f ? 4.0f : x;
  x = x < -4.0f ? -4.0f : x;
  const T s = x * x;
  T p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  T q = s * -1.45660718464996e-05f - 2.13374055278905e-04f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return x * p / q;
}
"""

_ERFC = """
// erfc(x) = exp(-x^2) t P(t), t = 1 / (1 + |x| / 2), and 2 - that for x < 0, with a least-squares fit of degree 9 in
// the relative error: within 1.2e-6 of the value however small that is. x^2 is taken in two parts: its rounding error
// would be multiplied by exp.
template <class T>
inline T erfc_poly(T x) {
  const T size = x < 0.0f ? -x : x;
  const T z = size > 10.5f ? T{} + 10.5f : size;
  const T t = 1.0f / (1.0f + 0.5f * z);
  T p = t * 0.01228387737f - 0.1232546939f;
  p = p * t + 0.4289284105f;
  p = p * t - 0.6700224744f;
  p = p * t + 0.4212742701f;
  p = p * t - 0.09831763244f;
  p = p * t + 0.2255418529f;
  p = p * t + 0.2386448353f;
  p = p * t + 0.2828570359f;
  p = p * t + 0.2820644991f;
  const T high = from_bits(bits_of(z) & ~0xfff);
  const T low = (high - z) * (high + z);
  const T tail = exp_poly(-high * high) * (1.0f + low + 0.5f * low * low) * (t * p);
  return x < 0.0f ? 2.0f - tail : tail;
}
"""

_TANH = """
// tanh(x) = x P(x^2) / Q(x^2), x clamped to [-7.905, 7.905]: within 2e-7.
template <class T>
inline T tanh_poly(T x) {
  x = x > 7.90531111f ? 7.90531111f : x;
  x = x < -7.90531111f ? -7.90531111f : x;
  const T s = x * x;
  T p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s - 8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  T q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  return x * p / q;
}
"""

_EXPM1 = """
// exp(x) - 1 cancels near zero: there a short series takes over.
template <class T>
inline T expm1_poly(T x) {
  T series = x * (1.0f / 720.0f) + 1.0f / 120.0f;
  series = series * x + 1.0f / 24.0f;
  series = series * x + 1.0f / 6.0f;
  series = series * x + 0.5f;
  series = series * (x * x) + x;
  const T size = x < 0.0f ? -x : x;
  return size < 0.35f ? series : exp_poly(x) - 1.0f;
}
"""

_LOG = """
// log(x) = n ln(2) + log(m), m in [sqrt(1/2), sqrt(2)), with a polynomial for log(m). Zero gives minus infinity, below
// it not-a-number; subnormal numbers count as zero.
template <class T>
inline T log_poly(T x) {
  const auto bits = bits_of(x);
  const auto n = ((bits - 0x3f3504f3) >> 23);
  const T m = from_bits(bits - (n << 23)) - 1.0f;
  const T s = m * m;
  T p = m * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  p = p * m * s;
  const T whole = to_float(n);
  T result = (p + whole * -2.12194440e-4f) - 0.5f * s + m + whole * 0.693359375f;
  result = x < 1.17549435e-38f ? (x < 0.0f ? T{} + NAN : T{} - INFINITY) : result;
  return x < INFINITY ? result : x;
}
"""

_LOG1P = """
// log(1 + x): the digits of x that 1 + x drops come back by the ratio x / ((1 + x) - 1).
template <class T>
inline T log1p_poly(T x) {
  const T w = x + 1.0f;
  const T kept = w - 1.0f;
  const T safe = kept == 0.0f ? T{} + 1.0f : kept;
  const T result = log_poly(w) * (x / safe);
  const T exact = kept == 0.0f ? x : result;
  return w < INFINITY ? exact : w;
}
"""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "expm1_poly": ("exp_poly",),
    "log1p_poly": ("log_poly",),
    "erfc_poly": ("exp_poly",),
}
FUNCTIONS: Mapping[str, str] = {
    "exp_poly": _EXP,
    "expm1_poly": _EXPM1,
    "tanh_poly": _TANH,
    "erf_poly": _ERF,
    "erfc_poly": _ERFC,
    "log_poly": _LOG,
    "log1p_poly": _LOG1P,
}
