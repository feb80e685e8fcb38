"""Pieces of C++ that kernels start with: views of tensors, vectors of floats, polynomial functions.

A kernel holds only the pieces that it uses. Sources of the polynomials: exp and log after S. Moshier's Cephes (`expf`,
`logf`), erf and tanh the rational minimax fits of Eigen and XLA; errors measured here are in the comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.models.search.ir import ViewStep

VIEW = """
constexpr int kMaxDims = 8;

// A tensor as this kernel walks it: where it starts, and for each axis its size and its stride in elements.
struct View {
  float *data;
  int64_t ndim;
  int64_t shape[kMaxDims];
  int64_t stride[kMaxDims];
};
"""

VIEW_STRIDED = """
View view_of(const sb_tensor &t) {
  View v{static_cast<float *>(t.data), t.ndim, {}, {}};
  for (int64_t d = 0; d < t.ndim; ++d) {
    v.shape[d] = t.shape[d];
    v.stride[d] = t.strides[d];
  }
  return v;
}
"""

VIEW_DENSE = """
// Tensors come dense and row-major, so strides follow from the shape.
View view_of(const sb_tensor &t) {
  View v{static_cast<float *>(t.data), t.ndim, {}, {}};
  int64_t step = 1;
  for (int64_t d = t.ndim - 1; d >= 0; --d) {
    v.shape[d] = t.shape[d];
    v.stride[d] = step;
    step *= t.shape[d];
  }
  return v;
}
"""

_PART = """
// The k-th of `parts` equal parts of the last axis.
View part(View v, int64_t k, int64_t parts) {
  const int64_t last = v.ndim - 1;
  v.shape[last] /= parts;
  v.data += k * v.shape[last] * v.stride[last];
  return v;
}
"""

_SWAP = """
// Two axes exchanged, counted from the end: -1 is the last.
View swapped(View v, int64_t a, int64_t b) {
  std::swap(v.shape[v.ndim + a], v.shape[v.ndim + b]);
  std::swap(v.stride[v.ndim + a], v.stride[v.ndim + b]);
  return v;
}
"""

_EVERY = """
// Each `step`-th element of the last axis, from `start`.
View every(View v, int64_t start, int64_t step) {
  const int64_t last = v.ndim - 1;
  v.data += start * v.stride[last];
  v.shape[last] = (v.shape[last] - start + step - 1) / step;
  v.stride[last] *= step;
  return v;
}
"""


def view_helpers(steps: Iterable[ViewStep], *, dense: bool) -> str:
    """The structure, its constructor, and the changes of view that occur in `steps`."""
    kinds = {step.kind for step in steps}
    texts = [VIEW, VIEW_DENSE if dense else VIEW_STRIDED]
    texts += [text for kind, text in (("part", _PART), ("swap", _SWAP), ("every", _EVERY)) if kind in kinds]
    return "".join(texts)


def view_expression(tensor: str, steps: Iterable[ViewStep]) -> str:
    """`view_of(tensor)` seen through the steps."""
    text = f"view_of({tensor})"
    for step in steps:
        function = {"part": "part", "swap": "swapped", "every": "every"}[step.kind]
        text = f"{function}({text}, {step.first}, {step.second})"
    return text


VECTOR = """
// @LANES@ floats that one instruction handles where the machine has registers that wide.
constexpr int kLanes = @LANES@;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t IntVec __attribute__((vector_size(4 * kLanes)));

inline Vec load(const float *p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

inline void store(float *p, Vec v) { std::memcpy(p, &v, sizeof v); }

inline Vec wide(float x) { return Vec{} + x; }
"""

VECTOR_PARTS: Mapping[str, str] = {
    "load_padded": """
// The last `rest` elements of a row, and `fill` in the lanes after them.
inline Vec load_padded(const float *p, int64_t rest, float fill) {
  float buffer[kLanes];
  std::fill(buffer, buffer + kLanes, fill);
  std::memcpy(buffer, p, rest * sizeof(float));
  return load(buffer);
}
""",
    "load_masked": """
// Only the lanes below `rest` are read; the others hold `fill`.
inline Vec load_masked(const float *p, int64_t rest, float fill) {
  Vec v{};
  for (int lane = 0; lane < kLanes; ++lane) v[lane] = lane < rest ? p[lane] : fill;
  return v;
}
""",
    "store_part": """
inline void store_part(float *p, Vec v, int64_t rest) { std::memcpy(p, &v, rest * sizeof(float)); }
""",
    "keep": """
// Lanes from `rest` on are replaced, so that they leave a sum or a maximum as it is.
inline Vec keep(Vec v, int64_t rest, float neutral) {
  for (int lane = 0; lane < kLanes; ++lane) v[lane] = lane < rest ? v[lane] : neutral;
  return v;
}
""",
    "to_double": """
typedef double DoubleVec __attribute__((vector_size(8 * kLanes)));

inline DoubleVec to_double(Vec v) { return __builtin_convertvector(v, DoubleVec); }
""",
    "sum_lanes": """
template <class V>
inline auto sum_lanes(V v) {
  auto total = v[0];
  for (int lane = 1; lane < kLanes; ++lane) total += v[lane];
  return total;
}
""",
    "prod_lanes": """
inline float prod_lanes(Vec v) {
  float total = v[0];
  for (int lane = 1; lane < kLanes; ++lane) total *= v[lane];
  return total;
}
""",
}

_BITS = """
inline int32_t to_int(float x) { return static_cast<int32_t>(x); }
inline float to_float(int32_t x) { return static_cast<float>(x); }
inline float from_bits(int32_t x) { return __builtin_bit_cast(float, x); }
inline int32_t bits_of(float x) { return __builtin_bit_cast(int32_t, x); }
"""

_BITS_VECTOR = """
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

_NEEDS: Mapping[str, tuple[str, ...]] = {
    "expm1_poly": ("exp_poly",),
    "log1p_poly": ("log_poly",),
    "erfc_poly": ("exp_poly",),
}
_FUNCTIONS: Mapping[str, str] = {
    "exp_poly": _EXP,
    "expm1_poly": _EXPM1,
    "tanh_poly": _TANH,
    "erf_poly": _ERF,
    "erfc_poly": _ERFC,
    "log_poly": _LOG,
    "log1p_poly": _LOG1P,
}


def lanes_function(name: str, arity: int) -> str:
    """A library function applied to each lane of a vector."""
    parameters = ", ".join(f"Vec {letter}" for letter in "ab"[:arity])
    arguments = ", ".join(f"{letter}[lane]" for letter in "ab"[:arity])
    return f"""
inline Vec lanes_{name}({parameters}) {{
  Vec result{{}};
  for (int lane = 0; lane < kLanes; ++lane) result[lane] = std::{name}({arguments});
  return result;
}}
"""


def helpers(used: Iterable[str], *, vector: bool, lanes: str) -> str:
    """The vector type and every helper that `used` names, each after those it needs."""
    names = set(used)
    for name in tuple(names):
        names.update(_NEEDS.get(name, ()))
    texts = [VECTOR.replace("@LANES@", lanes)] if vector else []
    texts += [text for name, text in VECTOR_PARTS.items() if name in names]
    if names & {"exp_poly", "log_poly"}:
        texts.append(_BITS)
        texts += [_BITS_VECTOR] if vector else []
    texts += [text for name, text in _FUNCTIONS.items() if name in names]
    for name in sorted(name for name in names if name.startswith("lanes:")):
        _, function, arity = name.split(":")
        texts.append(lanes_function(function, int(arity)))
    return "".join(texts)
