"""Copies that rearrange: rows repeated, reversed, expanded, or written into a part of another tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from device.operators.base import Case, Operator, TensorSpec, beside
from device.operators.formats import SHORT
from device.operators.forms import nothing_summed, odd, padded, prime, same, swapped
from device.operators.npukernelbench.level2.plan import Attributes, Shapes, planned, same_as

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor

Sizes = tuple[int, ...]
_SPANS = {"int32": (-(2**31), 2**31), "int64": (-(2**62), 2**62)}
_BITS = "Elements are moved, not computed with: int64 does not survive a detour over floating point."


def expand(x: Tensor, *, rows: float) -> tuple[Tensor, ...]:
    """Repeat x along a new first axis."""
    return (x.expand(int(rows), *x.shape).clone(),)


def feeds_repeat(feeds: Tensor, times: Tensor, *, output_feeds_size: float) -> tuple[Tensor, ...]:
    """Repeat row i of feeds times[i] times, one after the other, and fill up with zeros to output_feeds_size rows."""
    out = feeds.new_zeros((int(output_feeds_size), *feeds.shape[1:]))
    at = 0
    for line, count in zip(feeds, times.tolist(), strict=True):
        out[at : at + count] = line
        at += count
    return (out,)


def feeds_repeat_of_torch(feeds: Tensor, times: Tensor, *, output_feeds_size: float) -> tuple[Tensor, ...]:
    """Call torch's own repetition, and fill up."""
    repeated = feeds.repeat_interleave(times, dim=0)
    out = feeds.new_zeros((int(output_feeds_size), *feeds.shape[1:]))
    out[: repeated.shape[0]] = repeated
    return (out,)


def reverse_sequence(x: Tensor, lengths: Tensor, *, seq_dim: float, batch_dim: float) -> tuple[Tensor, ...]:
    """Reverse the first lengths[b] elements along seq_dim of each index b along batch_dim; the rest stays."""
    out = x.clone()
    for b, length in enumerate(lengths.tolist()):
        of, to = x.select(int(batch_dim), b), out.select(int(batch_dim), b)
        axis = int(seq_dim) - (seq_dim > batch_dim)
        to.narrow(axis, 0, length).copy_(of.narrow(axis, 0, length).flip(axis))
    return (out.contiguous(),)


def reverse_sequence_of_torch(x: Tensor, lengths: Tensor, *, seq_dim: float, batch_dim: float) -> tuple[Tensor, ...]:
    """Gather by an index that is reversed within each length."""
    size, axes = x.shape[int(seq_dim)], x.dim()
    place = lengths.new_tensor(range(size))
    index = place.where(place >= lengths[:, None], lengths[:, None] - 1 - place)
    index = index if batch_dim < seq_dim else index.T
    shape = [x.shape[d] if d in {int(seq_dim), int(batch_dim)} else 1 for d in range(axes)]
    return (x.gather(int(seq_dim), index.reshape(shape).expand(x.shape)),)


def assign(
    var: Tensor, value: Tensor, *, begin0: float, end0: float, step0: float, begin1: float, end1: float, step1: float
) -> tuple[Tensor, ...]:
    """Copy var, then write value into its slices begin0:end0:step0 and begin1:end1:step1 of the two axes."""
    out = var.clone()
    out[int(begin0) : int(end0) : int(step0), int(begin1) : int(end1) : int(step1)] = value
    return (out.contiguous(),)


def _sequences(rng: Generator) -> Mapping[str, Sizes]:
    return {
        "prime": (prime(rng, 3, 20), prime(rng, 17, 80), prime(rng, 3, 30)),
        "single": (1, 1, 1),
        "line": (odd(rng, 3, 30), odd(rng, 100, 900), 1),
        "deep": (3, odd(rng, 3, 12), 2, odd(rng, 3, 12)),
        "many": (odd(rng, 200, 400), odd(rng, 3, 9), odd(rng, 3, 9)),
    }


SEQUENCES: Shapes[Sizes] = Shapes(
    {"long": (16, 256, 128), "short": (512, 16, 64)},
    {"tail": (5, 7, 13), "vectors": (9, 33, 1), "one": (1, 40, 3), "four": (4, 3, 5, 6)},
    _sequences,
)


def _reversed_inputs(first: Sizes, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    seq, batch = int(attributes["seq_dim"]), int(attributes["batch_dim"])
    return TensorSpec(first, dtype, span=_SPANS.get(dtype)), TensorSpec(
        (first[batch],), "int64", span=(0, first[seq] + 1)
    )


def _fed(rng: Generator) -> Mapping[str, Sizes]:
    return {
        "prime": (prime(rng, 17, 80), prime(rng, 17, 80)),
        "numbers": (odd(rng, 100, 300),),
        "single": (1, 1),
        "deep": (odd(rng, 3, 20), 3, odd(rng, 3, 20)),
    }


FEEDS: Shapes[Sizes] = Shapes(
    {"rows": (48, 256), "wide": (16, 512)},
    {"tail": (7, 33), "numbers": (20,), "deep": (5, 3, 4), "one": (1, 17)},
    _fed,
)
SIZE = 1024.0


def _fed_inputs(first: Sizes, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    most = int(attributes["output_feeds_size"]) // first[0]
    return TensorSpec(first, dtype, span=_SPANS.get(dtype)), TensorSpec((first[0],), "int32", span=(0, most + 1))


def _fed_outputs(case: Case) -> tuple[TensorSpec, ...]:
    feeds = case.inputs[0]
    return (TensorSpec((int(case.attributes["output_feeds_size"]), *feeds.shape[1:]), feeds.dtype),)


def _numbers(rng: Generator) -> Mapping[str, TensorSpec]:
    return {
        "prime": TensorSpec((prime(rng, 17, 300),)),
        "single": TensorSpec((1,)),
        "matrix": TensorSpec((odd(rng, 3, 30), odd(rng, 3, 30))),
        "swapped": swapped((odd(rng, 3, 30), odd(rng, 3, 30))),
    }


NUMBERS: Shapes[TensorSpec] = Shapes(
    {"long": TensorSpec((16384,)), "plane": TensorSpec((64, 128))},
    {"tail": TensorSpec((131,)), "four": TensorSpec((4,)), "matrix": TensorSpec((5, 7)), "sliced": padded((3, 9))},
    _numbers,
)


def _expanded_input(first: TensorSpec, dtype: str, attributes: Attributes) -> tuple[TensorSpec, ...]:
    del attributes
    return (TensorSpec(first.shape, dtype, first.strides, span=_SPANS[dtype]),)


def _expanded_output(case: Case) -> tuple[TensorSpec, ...]:
    return (TensorSpec((int(case.attributes["rows"]), *case.inputs[0].shape), case.inputs[0].dtype),)


Slice = tuple[int, int, int]


def _assigned(
    name: str, var: TensorSpec, dtype: str, rows: Slice, columns: Slice, *, timed: bool = False, hidden: bool = False
) -> Case:
    names = ("begin0", "end0", "step0", "begin1", "end1", "step1")
    shape = tuple(len(range(*part)) for part in (rows, columns))
    inputs = (TensorSpec(var.shape, dtype, var.strides), TensorSpec(shape, dtype))
    return Case(f"{name}-{SHORT[dtype]}", inputs, dict(zip(names, (*rows, *columns), strict=True)), timed, hidden)


def assign_hidden(rng: Generator) -> tuple[Case, ...]:
    """Odd slices of odd matrices and of views."""
    cases = []
    for dtype in ("float32", "float16"):
        m, n = prime(rng, 17, 80), prime(rng, 17, 80)
        rows = (int(rng.integers(0, 5)), int(rng.integers(9, m + 1)), int(rng.integers(1, 4)))
        columns = (int(rng.integers(0, 5)), int(rng.integers(9, n + 1)), int(rng.integers(1, 6)))
        cases += [
            _assigned("prime", TensorSpec((m, n)), dtype, rows, columns, hidden=True),
            _assigned("swapped", swapped((m, n)), dtype, rows, columns, hidden=True),
            _assigned("padded", padded((m, n)), dtype, (0, m, 1), columns, hidden=True),
            _assigned("last", TensorSpec((m, n)), dtype, (m - 1, m, 1), (0, n, 1), hidden=True),
            _assigned("one", TensorSpec((1, 1)), dtype, (0, 1, 1), (0, 1, 1), hidden=True),
        ]
    return tuple(cases)


OPERATORS = (
    planned(
        "ExpandV2", expand, expert=beside(__file__, "expand.cpp"), family="layout",
        summary="out[r, ..] = x[..] for r = 0 .. rows - 1, int64.",
        shapes=NUMBERS, inputs=_expanded_input, outputs=_expanded_output, dtypes=("int64",),
        accumulation=nothing_summed,
        variants={"": {"rows": 12}, "four": {"rows": 4}, "one": {"rows": 1}},
        traps=(_BITS, "The output is memory of its own, not a view with a stride of 0."),
        full=[(TensorSpec((4,)), "int64", "four"), (TensorSpec((48,)), "int64", "")],
    ),
    planned(
        "FeedsRepeat", feeds_repeat, baseline=feeds_repeat_of_torch, expert=beside(__file__, "feeds_repeat.cpp"),
        summary="out = row i of feeds, times[i] times, one after the other, then zeros up to output_feeds_size rows.",
        family="layout", shapes=FEEDS, inputs=_fed_inputs, outputs=_fed_outputs,
        dtypes=("float32", "float16", "bfloat16"), accumulation=nothing_summed,
        variants={"": {"output_feeds_size": SIZE}, "short": {"output_feeds_size": 512.0}},
        traps=("The rows behind the last repetition are zeros, not left as they were.",
               "A count may be 0; where a row goes depends on all counts before it."),
        full=[((48, 128), "float16", ""), ((48, 32), "bfloat16", "")],
        conditions=("The counts are not negative, and their sum is not above output_feeds_size.",),
    ),
    planned(
        "ReverseSequence", reverse_sequence, baseline=reverse_sequence_of_torch,
        expert=beside(__file__, "reverse_sequence.cpp"), family="layout",
        summary=("out = x with the first lengths[b] elements along the axis seq_dim reversed, for each index b "
                 "along the "
                 "axis batch_dim; lengths int64."),
        shapes=SEQUENCES, inputs=_reversed_inputs, outputs=same_as(0), dtypes=("float32", "float16", "int32", "int64"),
        accumulation=nothing_summed,
        variants={"": {"seq_dim": 1, "batch_dim": 0}, "swapped": {"seq_dim": 0, "batch_dim": 1},
                  "inner": {"seq_dim": 2, "batch_dim": 1}},
        traps=(_BITS, "Only the first elements are reversed; the rest of the sequence stays where it is.",
               "A length of 0 or 1 changes nothing."),
        full=[((48, 1024, 1024), "float32", ""), ((8, 8, 8, 8), "float32", "inner")],
        conditions=("Lengths are between 0 and the size of seq_dim.",),
    ),
    Operator(
        name="StridedSliceAssignV2",
        level=2,
        family="layout",
        summary="out = var, but value at [begin0:end0:step0, begin1:end1:step1]; both are matrices, inputs var, value.",
        attributes=("begin0", "end0", "step0", "begin1", "end1", "step1"),
        cases=(
            _assigned("rows", TensorSpec((512, 1024)), "float32", (1, 512, 2), (0, 1024, 1), timed=True),
            _assigned("both", TensorSpec((512, 1024)), "float16", (0, 400, 3), (5, 1000, 2), timed=True),
            _assigned("tail", TensorSpec((13, 31)), "float32", (2, 11, 3), (1, 30, 4)),
            _assigned("all", TensorSpec((7, 9)), "float16", (0, 7, 1), (0, 9, 1)),
            _assigned("transposed", swapped((31, 45)), "float32", (3, 20, 2), (0, 45, 1)),
            _assigned("sliced", padded((8, 99)), "float16", (0, 8, 5), (90, 99, 1)),
        ),
        full_cases=(
            _assigned("full-rows", TensorSpec((10, 10)), "float16", (0, 5, 1), (0, 10, 1)),
            _assigned("full-both", TensorSpec((4, 3)), "float32", (1, 4, 2), (0, 2, 1)),
        ),
        reference=assign,
        baseline=assign,
        outputs=same,
        hidden_cases=assign_hidden,
        accumulation=nothing_summed,
        dtypes=("float32", "float16"),
        expert_file=beside(__file__, "strided_slice_assign.cpp"),
        traps=(
            "What lies outside of the slice is copied from var.",
            "The end is not part of the slice, and the step need not divide its length.",
        ),
        conditions=("0 <= begin < end <= size and step >= 1 on both axes, and value has the slice's shape.",),
    ),
)  # fmt: skip
