"""Pieces of C++ that kernels start with: views of tensors and vectors of floats. A kernel holds only what it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agent.models.search import polynomials
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
        names.update(polynomials.NEEDS.get(name, ()))
    texts = [VECTOR.replace("@LANES@", lanes)] if vector else []
    texts += [text for name, text in VECTOR_PARTS.items() if name in names]
    if names & {"exp_poly", "log_poly"}:
        texts.append(polynomials.BITS)
        texts += [polynomials.BITS_VECTOR] if vector else []
    texts += [text for name, text in polynomials.FUNCTIONS.items() if name in names]
    for name in sorted(name for name in names if name.startswith("lanes:")):
        _, function, arity = name.split(":")
        texts.append(lanes_function(function, int(arity)))
    return "".join(texts)
