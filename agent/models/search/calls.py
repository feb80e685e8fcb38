"""Torch calls by name: which arguments they take, and the nodes that they stand for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.models.search import rows, views
from agent.models.search.errors import NoRecipe
from agent.models.search.ir import Apply, Input, Length, MatMul, Node, Recipe, Reduce, inputs_of, per_row
from agent.models.search.pointwise import FUNCTIONS, op

Value = Node | float | int | str | bool | None | tuple["Value", ...]

ROWWISE = frozenset({*rows.REDUCTIONS, *rows.OVER_ROWS, *rows.NORMS, *rows.PAIRWISE, "max", "min"})
"""Calls whose later arguments are axes or shapes rather than tensors to combine."""

_SAME = frozenset({"contiguous", "clone", "detach", "float", "double", "to", "type_as", "type", "requires_grad_"})


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call; a method's receiver is the first positional one."""

    positional: tuple[Value, ...]
    keywords: Mapping[str, Value]

    def take(self, place: int, *names: str, default: Value = None) -> Value:
        """The argument at `place`, or under one of `names`."""
        if place < len(self.positional):
            return self.positional[place]
        return next((self.keywords[name] for name in names if name in self.keywords), default)

    def tensor(self, operator: str, place: int, *names: str) -> Node:
        """The argument, which must be a tensor."""
        value = self.take(place, *names)
        if not isinstance(value, Node):
            raise NoRecipe(operator, f"argument {names[0] if names else place} that is not a tensor")
        return value


def pointwise(operator: str, name: str, arguments: Arguments) -> Node:
    """A pointwise function by torch's name."""
    if name not in FUNCTIONS:
        raise NoRecipe(operator, f"the function `{name}`")
    keywords = {key: value for key, value in arguments.keywords.items() if key != "inplace"}
    function = FUNCTIONS[name]
    try:
        inspect.signature(function).bind(*arguments.positional, **keywords)
        return function(*arguments.positional, **keywords)
    except (TypeError, AttributeError) as error:
        raise NoRecipe(operator, f"`{name}` with these arguments ({error})") from error


def call(  # noqa: PLR0911  (one return for each kind of call)
    operator: str, name: str, arguments: Arguments, ranks: views.Ranks, axes: set[int]
) -> Value:
    """What a call stands for. Axes that are reduced over are added to `axes`."""
    if name in _SAME:
        return arguments.tensor(operator, 0, "input")
    if name in _STRUCTURAL:
        return _STRUCTURAL[name](operator, arguments, ranks)
    if name in rows.NORMS:
        return _norm(operator, name, arguments, axes)
    if name in {"max", "min"} and not isinstance(arguments.take(1, "other"), Node):
        return _extreme(operator, name, arguments, ranks, axes)
    if name in rows.REDUCTIONS or name in rows.OVER_ROWS:
        return _over_axis(operator, name, arguments, ranks, axes)
    if name in rows.PAIRWISE:
        a, b = arguments.tensor(operator, 0, "x1", "input"), arguments.tensor(operator, 1, "x2", "other")
        axis = arguments.take(2, "dim", default=1)
        axes.add(views.axis_from_end(operator, a, axis, ranks))
        return rows.PAIRWISE[name](a, b)
    return pointwise(operator, {"max": "maximum", "min": "minimum"}.get(name, name), arguments)


def _norm(operator: str, name: str, arguments: Arguments, axes: set[int]) -> Node:
    x = arguments.tensor(operator, 0, "input")
    shape = arguments.take(1, "normalized_shape")
    if isinstance(shape, tuple) and len(shape) != 1:
        raise NoRecipe(operator, f"{name} over {len(shape)} axes")
    axes.add(-1)
    rest = arguments.positional[2:]
    keywords = {key: value for key, value in arguments.keywords.items() if key not in {"normalized_shape", "input"}}
    try:
        return rows.NORMS[name](x, None, *rest, **keywords)
    except TypeError as error:
        raise NoRecipe(operator, f"`{name}` with these arguments ({error})") from error


def _over_axis(operator: str, name: str, arguments: Arguments, ranks: views.Ranks, axes: set[int]) -> Node:
    x = arguments.tensor(operator, 0, "input", "x")
    rest = arguments.positional[1:]
    keywords = {key: value for key, value in arguments.keywords.items() if key not in {"dim", "axis", "input"}}
    if name in {"norm", "vector_norm", "normalize"}:
        power = rest[0] if rest else keywords.pop("p", keywords.pop("ord", 2.0))
        keywords["p"] = 2.0 if power in {None, "fro"} else power
        rest = rest[1:]
    if "unbiased" in keywords:
        keywords["correction"] = 1.0 if keywords.pop("unbiased") else 0.0
    default = 1 if name == "normalize" else None
    axis = rest[0] if rest else arguments.keywords.get("dim", arguments.keywords.get("axis", default))
    if per_row(x):
        raise NoRecipe(operator, f"`{name}` of something that is already reduced")
    axes.add(views.axis_from_end(operator, x, axis, ranks))
    if len(rest) > 1:
        keywords["keepdim"] = rest[1]
    table = rows.REDUCTIONS if name in rows.REDUCTIONS else rows.OVER_ROWS
    try:
        return table[name](x, **keywords)
    except TypeError as error:
        raise NoRecipe(operator, f"`{name}` with these arguments ({error})") from error


def _extreme(operator: str, name: str, arguments: Arguments, ranks: views.Ranks, axes: set[int]) -> Value:
    """`x.max(dim)`: the values and the indices."""
    x = arguments.tensor(operator, 0, "input")
    axes.add(views.axis_from_end(operator, x, arguments.take(1, "dim"), ranks))
    keepdim = bool(arguments.take(2, "keepdim", default=False))
    return (Reduce(name, x, keepdim), Reduce(f"arg{name}", x, keepdim))


def _chunk(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    x = arguments.tensor(operator, 0, "input")
    parts = arguments.take(1, "chunks")
    if isinstance(parts, Apply) and parts.op == "floordiv" and isinstance(parts.args[0], Length):
        parts = 2 if parts.args[1] == op("mul", 2.0, 1.0) else parts
    axis = views.axis_from_end(operator, x, arguments.take(2, "dim", default=0), ranks)
    if axis != -1 or not isinstance(parts, int):
        raise NoRecipe(operator, f"a split into {parts} along axis {axis}")
    return tuple(views.part(operator, x, k, parts) for k in range(parts))


def _glu(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    x, axis = arguments.tensor(operator, 0, "input"), arguments.take(1, "dim", default=-1)
    if views.axis_from_end(operator, x, axis, ranks) != -1:
        raise NoRecipe(operator, f"glu along axis {axis}")
    gate = FUNCTIONS["sigmoid"](views.part(operator, x, 1, 2))
    return op("mul", views.part(operator, x, 0, 2), gate)


def _transpose(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    x = arguments.tensor(operator, 0, "input")
    a, b = arguments.take(1, "dim0", "axis0", default=0), arguments.take(2, "dim1", "axis1", default=1)
    first, second = (views.axis_from_end(operator, x, axis, ranks) for axis in (a, b))
    return views.swapped(operator, x, min(first, second), max(first, second))


def _permute(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks  # the order itself tells the rank
    order = arguments.take(1, "dims")
    order = order if isinstance(order, tuple) else arguments.positional[1:]
    if not all(isinstance(axis, int) for axis in order):
        raise NoRecipe(operator, f"a permutation {order}")
    return views.permuted(operator, arguments.tensor(operator, 0, "input"), [int(axis) for axis in order])  # type: ignore[arg-type]  # all ints


def _size(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    x = inputs_of(arguments.tensor(operator, 0, "input"))[0]
    return views.length(operator, x, arguments.take(1, "dim"), ranks)


def _matmul(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks
    return MatMul(arguments.tensor(operator, 0, "input"), arguments.tensor(operator, 1, "other", "mat2"))


def _linear(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks
    weight = views.swapped(operator, arguments.tensor(operator, 1, "weight"), -2, -1)
    product = MatMul(arguments.tensor(operator, 0, "input"), weight)
    bias = arguments.take(2, "bias")
    return product if not isinstance(bias, Node) else op("add", product, bias)


def _addmm(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks
    product: Node = MatMul(arguments.tensor(operator, 1, "mat1"), arguments.tensor(operator, 2, "mat2"))
    beta, alpha = arguments.keywords.get("beta", 1.0), arguments.keywords.get("alpha", 1.0)
    if not isinstance(beta, (int, float, Node)) or not isinstance(alpha, (int, float, Node)):
        raise NoRecipe(operator, "addmm with these factors")
    return op("add", op("mul", product, alpha), op("mul", arguments.tensor(operator, 0, "input"), beta))


def _attention(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks
    q, k, v = (arguments.tensor(operator, at, name) for at, name in enumerate(("query", "key", "value")))
    if arguments.keywords.get("attn_mask") is not None or arguments.keywords.get("is_causal"):
        raise NoRecipe(operator, "attention with a mask")
    if not isinstance(q, Input):
        raise NoRecipe(operator, "attention whose query is not an input")
    scale = arguments.keywords.get("scale")
    factor = scale if isinstance(scale, (int, float, Node)) else op("rsqrt", Length(q))
    scores = op("mul", MatMul(q, views.swapped(operator, k, -2, -1)), factor)
    return MatMul(Recipe("softmax", (scores,)), v)


def _unsqueeze(operator: str, arguments: Arguments, ranks: views.Ranks) -> Value:
    del ranks
    x = arguments.tensor(operator, 0, "input")
    if not per_row(x) or arguments.take(1, "dim") != -1:
        raise NoRecipe(operator, "unsqueeze of a whole tensor")
    return views.with_axis(x)


_STRUCTURAL: Mapping[str, Callable[[str, Arguments, views.Ranks], Value]] = {
    "chunk": _chunk,
    "tensor_split": _chunk,
    "split": _chunk,
    "glu": _glu,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "t": _transpose,
    "permute": _permute,
    "size": _size,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "linear": _linear,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "scaled_dot_product_attention": _attention,
    "unsqueeze": _unsqueeze,
    "squeeze": lambda operator, arguments, _: arguments.tensor(operator, 0, "input"),
    "new_zeros": lambda *_: 0.0,
    "new_ones": lambda *_: 1.0,
}

__all__ = ["ROWWISE", "Arguments", "Value", "call", "pointwise"]
