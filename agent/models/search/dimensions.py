"""The decisions that an author of a kernel takes, each with its values, and when it is open.

The names and values here are those that experiences use in their `Change: name = value` lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traits:
    """What of an operator decides which choices it has."""

    family: str
    marks: frozenset[str]
    """Among: exp erf log softmax variance eps order argument sum map epilogue broadcast."""

    def __contains__(self, mark: str) -> bool:
        return mark in self.marks


@dataclass(frozen=True, slots=True)
class Dimension:
    """One decision. `values[0]` is what plain code does; `draft` weighs the values of a first draft."""

    name: str
    values: tuple[str, ...]
    draft: tuple[int, ...]
    families: frozenset[str]
    applies: Callable[[Traits, Mapping[str, str]], bool]
    reason: str
    """What it is about, in the words of a person who says why it is changed."""


def _always(traits: Traits, choices: Mapping[str, str]) -> bool:
    del traits, choices
    return True


def _mark(*marks: str) -> Callable[[Traits, Mapping[str, str]], bool]:
    return lambda traits, _: any(mark in traits for mark in marks)


def _vector(traits: Traits, choices: Mapping[str, str]) -> bool:
    return choices["simd"] == "vector" and traits.family != "layout"


def _steps(traits: Traits, choices: Mapping[str, str]) -> bool:
    """Whether some loop advances by more than one element, so that a rest can be left over."""
    many = choices.get("accumulators", "1") != "1" or choices.get("unroll", "1") != "1"
    if traits.family == "matmul":
        return choices["simd"] == "vector"
    return choices["simd"] == "vector" or (choices["simd"] == "none" and many)


def _unit_stride(traits: Traits, choices: Mapping[str, str]) -> bool:
    del traits
    return choices["layout"] != "general"


def _dot(traits: Traits, choices: Mapping[str, str]) -> bool:
    """Whether each element of a product is summed on its own, along k."""
    del traits
    return choices["register_tile"] == "none" and choices["loop_order"] == "ijk"


ROWWISE = frozenset({"reduction"})
FLAT = frozenset({"elementwise"})
PRODUCTS = frozenset({"matmul", "attention"})
ALL = frozenset({"elementwise", "layout", "reduction", "matmul", "attention"})

DIMENSIONS: tuple[Dimension, ...] = (
    Dimension(
        "layout", ("general", "assume_contiguous", "fast_path"), (5, 5, 0), ALL, _always,
        "how strides are treated: walked one by one, taken to be dense, or dense code with strided rows copied in",
    ),
    Dimension(
        "threads", ("none", "rows", "chunks", "threshold"), (1, 0, 0, 0), ALL, _always,
        "how many cores work: rows are independent, and a parallel region costs a few microseconds to open",
    ),
    Dimension(
        "simd", ("none", "pragma", "vector"), (6, 2, 2), ALL,
        lambda traits, choices: (
            choices["tile"] != "none" if traits.family == "layout" else choices["layout"] != "general"
        ),
        "how many elements an instruction handles",
    ),
    Dimension("lanes", ("8", "16"), (1, 1), ALL, _vector, "the width of a vector: 8 floats fill 256 bits, 16 fill 512"),
    Dimension(
        "unroll", ("1", "2", "4"), (1, 0, 0), FLAT,
        lambda traits, choices: _unit_stride(traits, choices) and choices["simd"] != "pragma",
        "how much independent work is in flight at once",
    ),
    Dimension(
        "accumulators", ("1", "2", "4", "8"), (1, 0, 0, 0), ROWWISE, lambda _, choices: choices["simd"] != "pragma",
        "how many partial results a sum or maximum is kept in: one waits four cycles for each addition",
    ),
    Dimension(
        "tail", ("scalar", "padded", "masked", "ignored"), (4, 1, 1, 3), ALL - {"layout", "attention"}, _steps,
        "what happens to the last elements, which fill no whole step",
    ),
    Dimension(
        "accumulator", ("float", "double", "kahan", "blocked"), (6, 1, 0, 0), ROWWISE | PRODUCTS,
        lambda traits, choices: "sum" in traits and (traits.family != "matmul" or _dot(traits, choices)),
        "how a long sum is kept: one float loses a digit for each factor of ten in length",
    ),
    Dimension(
        "softmax_shift", ("none", "max", "online"), (6, 4, 0), ROWWISE | {"attention"}, _mark("softmax"),
        "whether the greatest element is taken off before exp, which overflows above 88",
    ),
    Dimension(
        "exp_reuse", ("recompute", "store"), (1, 0), ROWWISE,
        lambda traits, choices: "exp_map" in traits and choices["softmax_shift"] != "online",
        "whether exp of an element is computed for the sum and again for the result, or kept in the output",
    ),
    Dimension(
        "division", ("each", "reciprocal"), (7, 3), ROWWISE | {"attention"}, _mark("quotient"),
        "whether each element is divided by a number of its row, or multiplied by the reciprocal taken once",
    ),
    Dimension(
        "variance", ("sum_of_squares", "two_pass", "shifted"), (5, 4, 0), ROWWISE, _mark("variance"),
        "how the variance is formed: the mean of squares less the squared mean cancels far from zero",
    ),
    Dimension(
        "eps", ("inside_root", "outside_root", "ignored"), (6, 2, 2), ROWWISE, _mark("eps"),
        "where epsilon goes: under the root, beside it, or nowhere",
    ),
    Dimension(
        "ties", ("first", "last"), (6, 4), ROWWISE, _mark("argument"),
        "which of equal elements is taken",
    ),
    Dimension(
        "nan", ("ignored", "propagate"), (7, 3), ROWWISE, _mark("order"),
        "what a comparison does with not-a-number, which no comparison ever chooses",
    ),
    Dimension(
        "exp", ("exact", "polynomial"), (1, 0), ALL, _mark("exp"),
        "whether exp is a call of the library or a polynomial that vectorizes",
    ),
    Dimension(
        "erf", ("exact", "polynomial"), (1, 0), ALL, _mark("erf"),
        "whether erf is a call of the library or a rational function that vectorizes",
    ),
    Dimension(
        "cdf", ("erf", "erfc"), (6, 4), ALL, _mark("cdf"),
        "whether 1 + erf(x) is formed as it is written, which cancels for large negative x, or as erfc(-x)",
    ),
    Dimension(
        "log", ("exact", "polynomial"), (1, 0), ALL,
        lambda traits, _: "log" in traits and traits.family == "elementwise",
        "whether log is a call of the library or a polynomial that vectorizes",
    ),
    Dimension(
        "loop_order", ("ijk", "ikj"), (5, 5), frozenset({"matmul"}),
        lambda _, choices: choices["register_tile"] == "none",
        "which loop is innermost: along k the second factor is read a column at a time, along j it is read in order",
    ),
    Dimension(
        "copy_order", ("output", "input"), (5, 5), frozenset({"layout"}), lambda _, choices: choices["tile"] == "none",
        "whether memory is written in order or read in order",
    ),
    Dimension(
        "tile", ("none", "8", "16", "32", "64"), (1, 0, 0, 0, 0), frozenset({"layout"}), _always,
        "whether the copy goes by square tiles, of which both sides stay in the first cache",
    ),
    Dimension(
        "tile_k", ("none", "64", "256"), (1, 0, 0), frozenset({"matmul"}),
        lambda traits, choices: not _dot(traits, choices),
        "how far along k a block goes, so that the rows of the second factor stay in cache",
    ),
    Dimension(
        "register_tile", ("none", "4x1", "4x2", "6x2", "8x2", "6x4"), (1, 0, 0, 0, 0, 0), frozenset({"matmul"}),
        lambda _, choices: choices["simd"] == "vector" and choices["layout"] != "general",
        "how large a piece of the result (rows x vectors) is kept in registers while k runs",
    ),
    Dimension(
        "packing", ("none", "panels"), (1, 0), frozenset({"matmul"}),
        lambda _, choices: choices["register_tile"] != "none",
        "whether the second factor is copied into panels that the inner loop reads in order",
    ),
    Dimension(
        "epilogue", ("separate", "fused"), (6, 4), frozenset({"matmul"}), _mark("epilogue"),
        "whether bias and activation are a pass of their own or happen where the product is stored",
    ),
    Dimension(
        "keys", ("rows", "transposed"), (1, 0), frozenset({"attention"}), _vector,
        "whether the keys are read as they lie, or turned once so that a vector holds one coordinate of many keys",
    ),
    Dimension(
        "query_tile", ("1", "4", "8"), (1, 0, 0), frozenset({"attention"}), _vector,
        "how many queries share each key and value that is loaded",
    ),
    Dimension(
        "stores", ("cached", "streaming"), (1, 0), FLAT, _unit_stride,
        "whether results go through the caches or past them to memory",
    ),
    Dimension(
        "restrict", ("off", "on"), (7, 3), ALL - {"layout"}, _always,
        "whether the compiler is told that outputs do not overlap inputs",
    ),
    Dimension(
        "fast_math", ("off", "on"), (1, 0), ALL - {"layout"}, _always,
        "whether the compiler may reorder sums and call vector versions of exp and erf",
    ),
    Dimension(
        "unroll_loops", ("off", "on"), (1, 0), ALL, _always, "whether the compiler unrolls loops further than it would",
    ),
)  # fmt: skip
