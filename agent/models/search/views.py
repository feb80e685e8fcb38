"""Views of inputs that a reference takes: halves, transpositions, steps; and reductions over an axis not last."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from agent.models.search.errors import NoRecipe
from agent.models.search.ir import (
    Apply,
    Const,
    First,
    Input,
    Length,
    MatMul,
    Node,
    Recipe,
    Reduce,
    ViewStep,
    children,
    inputs_of,
    per_row,
    rebuild,
)

Ranks = Sequence[int | None]


def rank_of(node: Node, ranks: Ranks) -> int | None:
    """The number of axes of `node`, where the cases tell."""
    known = [ranks[at.index] for at in inputs_of(node)]
    return None if not known or None in known else max(rank for rank in known if rank is not None)


def axis_from_end(operator: str, node: Node, axis: object, ranks: Ranks) -> int:
    """`axis` counted from the end; an axis counted from the front needs the same rank in every case."""
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise NoRecipe(operator, f"a reduction over {'all axes' if axis is None else axis}")
    if axis < 0:
        return axis
    rank = rank_of(node, ranks)
    if rank is None:
        raise NoRecipe(operator, f"axis {axis} of a tensor whose number of axes differs between cases")
    return axis - rank


def length(operator: str, of: Input, index: object, ranks: Ranks) -> Length:
    """`x.shape[index]`, for the last axis."""
    if not isinstance(index, int) or axis_from_end(operator, of, index, ranks) != -1:
        raise NoRecipe(operator, f"the length of axis {index}")
    return Length(of)


def sliced(operator: str, x: Input, start: object, stop: object, step: object) -> Node:
    """`x[..., start:stop:step]` where it is one of two halves, or each second element."""
    half = Apply("floordiv", (Length(x), Const(2.0)))
    match (start, stop, step):
        case (None | 0, stop, None) if stop == half:
            return part(operator, x, 0, 2)
        case (start, None, None) if start == half:
            return part(operator, x, 1, 2)
        case (None | int(), None, int()):
            return Input(x.index, x.name, (*x.views, ViewStep("every", int(start or 0), step)))
        case _:
            raise NoRecipe(operator, f"the slice {start}:{stop}:{step} of {x.name}")


def part(operator: str, x: Node, k: int, of: int) -> Node:
    """The k-th of `of` equal parts of the last axis."""
    if not isinstance(x, Input):
        raise NoRecipe(operator, "a part of something that is not an input")
    return Input(x.index, x.name, (*x.views, ViewStep("part", k, of)))


def swapped(operator: str, node: Node, a: int, b: int) -> Node:
    """`node` with two axes swapped; the swap is moved down to the inputs of a pointwise tree."""
    if a == b:
        return node

    def on_input(at: Node) -> Node:
        if isinstance(at, (Reduce, Recipe, First, MatMul, Length)):
            raise NoRecipe(operator, f"a transposition of a {type(at).__name__}")
        return Input(at.index, at.name, (*at.views, ViewStep("swap", a, b))) if isinstance(at, Input) else at

    return rebuild(node, on_input)


def permuted(operator: str, node: Node, order: Sequence[int]) -> Node:
    """`node.permute(order)`, as a chain of swaps."""
    rank = len(order)
    target = [axis % rank for axis in order]
    current = list(range(rank))
    for place in range(rank):
        found = current.index(target[place])
        if found != place:
            node = swapped(operator, node, place - rank, found - rank)
            current[place], current[found] = current[found], current[place]
    return node


def keeps_axis(node: Node) -> bool:
    """Whether every reduction that reaches the top of `node` kept its axis."""
    if isinstance(node, (Reduce, Recipe)):
        return node.keepdim
    return all(keeps_axis(child) for child in children(node))


def with_axis(node: Node) -> Node:
    """`node.unsqueeze(-1)` of one number a row."""
    if isinstance(node, Reduce):
        return Reduce(node.kind, node.arg)
    if isinstance(node, Recipe):
        return Recipe(node.name, node.args, parameter=node.parameter)
    if isinstance(node, Apply):
        return Apply(node.op, tuple(with_axis(arg) for arg in node.args))
    return node


def rows_last(operator: str, root: Node, axes: AbstractSet[int], ranks: Ranks) -> tuple[Node, tuple[ViewStep, ...]]:
    """The tree with the reduced axis moved last in every input, and the same change of view for the output."""
    if not axes or axes == {-1}:
        return root, ()
    if len(axes) > 1:
        raise NoRecipe(operator, f"reductions over the axes {sorted(axes)} together")
    axis = next(iter(axes))
    if len({ranks[at.index] for at in inputs_of(root)}) != 1:
        raise NoRecipe(operator, f"a reduction over axis {axis} of inputs with different numbers of axes")
    steps = tuple(ViewStep("swap", at, at + 1) for at in range(axis, -1))

    def on_input(at: Node) -> Node:
        return Input(at.index, at.name, (*at.views, *steps)) if isinstance(at, Input) else at

    return rebuild(root, on_input), () if per_row(root) else steps
