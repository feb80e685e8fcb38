"""Named operations over rows, and the ways in which each can be computed.

`READERS` turns torch's calls into nodes; `lower` turns a `Recipe` into reductions and pointwise nodes under the choices
made for it. A recipe that is not in these tables is one that this model does not have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from agent.models.search.ir import (
    Apply,
    Attribute,
    Const,
    First,
    Length,
    Node,
    Recipe,
    Reduce,
    inputs_of,
    per_row,
    rebuild,
    scalar,
)
from agent.models.search.pointwise import Arg, op


def length_of(node: Node) -> Length:
    """The length of the rows that `node` runs over."""
    widest = inputs_of(node)[0]
    return Length(widest)


def mean(x: Node, *, keepdim: bool = False) -> Node:
    """Sum over the row divided by its length."""
    return op("div", Reduce("sum", x, keepdim), length_of(x))


def _softmax(x: Node) -> Node:
    return Recipe("softmax", (x,))


def _layer_norm(
    x: Node, normalized_shape: object = None, weight: Arg | None = None, bias: Arg | None = None, eps: Arg = 1e-5
) -> Node:
    del normalized_shape  # one axis, the last: the reader has refused anything else
    centred = op("sub", x, mean(x, keepdim=True))
    node = op("mul", centred, op("rsqrt", op("add", Recipe("var", (x,)), eps)))
    node = node if weight is None else op("mul", node, weight)
    return node if bias is None else op("add", node, bias)


def _rms_norm(x: Node, normalized_shape: object = None, weight: Arg | None = None, eps: Arg = 1.1920929e-07) -> Node:
    del normalized_shape  # one axis, the last: the reader has refused anything else
    node = op("mul", x, op("rsqrt", op("add", mean(op("mul", x, x), keepdim=True), eps)))
    return node if weight is None else op("mul", node, weight)


def _norm(x: Node, p: float = 2.0, *, keepdim: bool = False) -> Node:
    if p == 1.0:
        return Reduce("sum", op("abs", x), keepdim)
    if p == math.inf:
        return Reduce("max", op("abs", x), keepdim)
    if p == 2.0:
        return op("sqrt", Reduce("sum", op("mul", x, x), keepdim))
    return op("pow", Reduce("sum", op("pow", op("abs", x), p), keepdim), 1.0 / p)


def _normalize(x: Node, p: float = 2.0, eps: Arg = 1e-12) -> Node:
    norm = _norm(x, p, keepdim=True)
    return op("div", x, op("where", op("lt", norm, eps), eps, norm))


def _var(x: Node, correction: float = 1.0, *, keepdim: bool = False) -> Node:
    return Recipe("var", (x,), keepdim, correction)


def _cosine_similarity(a: Node, b: Node, eps: Arg = 1e-8) -> Node:
    def size(x: Node) -> Node:
        norm = _norm(x)
        return op("where", op("lt", norm, eps), eps, norm)

    return op("div", Reduce("sum", op("mul", a, b), keepdim=False), op("mul", size(a), size(b)))


REDUCTIONS: Mapping[str, Callable[..., Node]] = {
    "sum": lambda x, keepdim=False: Reduce("sum", x, keepdim),
    "prod": lambda x, keepdim=False: Reduce("prod", x, keepdim),
    "mean": lambda x, keepdim=False: mean(x, keepdim=keepdim),
    "amax": lambda x, keepdim=False: Reduce("max", x, keepdim),
    "amin": lambda x, keepdim=False: Reduce("min", x, keepdim),
    "argmax": lambda x, keepdim=False: Reduce("argmax", x, keepdim),
    "argmin": lambda x, keepdim=False: Reduce("argmin", x, keepdim),
    "logsumexp": lambda x, keepdim=False: Recipe("logsumexp", (x,), keepdim),
    "var": _var,
    "std": lambda x, correction=1.0, keepdim=False: op("sqrt", _var(x, correction, keepdim=keepdim)),
    "norm": _norm,
    "vector_norm": _norm,
}
"""Calls that take (x, dim, keepdim) and give one number a row."""

OVER_ROWS: Mapping[str, Callable[..., Node]] = {
    "softmax": _softmax,
    "softmin": lambda x: _softmax(op("neg", x)),
    "log_softmax": lambda x: op("sub", x, Recipe("logsumexp", (x,))),
    "normalize": _normalize,
}
"""Calls that take (x, dim) and keep the shape."""

NORMS: Mapping[str, Callable[..., Node]] = {"layer_norm": _layer_norm, "rms_norm": _rms_norm}
"""Calls that take (x, normalized_shape, weight, …) and keep the shape."""

PAIRWISE: Mapping[str, Callable[..., Node]] = {"cosine_similarity": _cosine_similarity}
"""Calls that take (a, b, dim) and give one number a row."""


def lower(root: Node, choices: Mapping[str, str]) -> Node:
    """The tree with every recipe written out, and the epsilon placed, as `choices` say."""
    written = rebuild(root, lambda node: _written_out(_epsilon(node, choices), choices))
    if choices.get("cdf", "erf") == "erf":
        written = rebuild(written, _distribution)
    return rebuild(written, _reciprocal) if choices.get("division") == "reciprocal" else written


def _distribution(node: Node) -> Node:
    """erfc(z) as 1 - erf(z), or 1 + erf(w) where z is -w."""
    match node:
        case Apply("erfc", (Apply("neg", (w,)),)):
            return op("add", 1.0, op("erf", w))
        case Apply("erfc", (z,)):
            return op("sub", 1.0, op("erf", z))
        case _:
            return node


def divides_by_row(node: Node) -> bool:
    """Whether the node divides each element by a number of its row."""
    return isinstance(node, Apply) and node.op == "div" and not per_row(node) and _varies(node.args[1])


def _varies(node: Node) -> bool:
    return per_row(node) and not scalar(node)


def _reciprocal(node: Node) -> Node:
    if divides_by_row(node) and isinstance(node, Apply):
        return op("mul", node.args[0], op("div", 1.0, node.args[1]))
    return node


def has_epsilon(root: Node) -> bool:
    """Whether a root of a row number plus a small constant is taken anywhere (what layer and RMS norm do)."""
    return any(_is_guarded_root(node) for node in _everything(root))


def _everything(root: Node) -> list[Node]:
    found: list[Node] = []
    rebuild(root, lambda node: found.append(node) or node)  # type: ignore[func-returns-value]  # append, then the node
    return found


def _is_guarded_root(node: Node) -> bool:
    if not (isinstance(node, Apply) and node.op in {"sqrt", "rsqrt"}):
        return False
    inner = node.args[0]
    if not (isinstance(inner, Apply) and inner.op == "add"):
        return False
    last = inner.args[1]
    return (isinstance(last, Attribute) and "eps" in last.name) or (isinstance(last, Const) and 0 < last.value < 1e-3)


def _epsilon(node: Node, choices: Mapping[str, str]) -> Node:
    place = choices.get("eps", "inside_root")
    if place == "inside_root" or not _is_guarded_root(node) or not isinstance(node, Apply):
        return node
    sum_ = node.args[0]
    if not isinstance(sum_, Apply):
        return node
    value, eps = sum_.args
    if place == "ignored":
        return Apply(node.op, (value,))
    outside = op("add", op("sqrt", value), eps)
    return outside if node.op == "sqrt" else op("div", 1.0, outside)


def _written_out(node: Node, choices: Mapping[str, str]) -> Node:
    if not isinstance(node, Recipe):
        return node
    x = node.args[0]
    match node.name:
        case "softmax":
            top = _top(x, choices)
            e = op("exp", x if top is None else op("sub", x, top))
            return op("div", e, Reduce("sum", e))
        case "logsumexp":
            top = _top(x, choices)
            if top is None:
                return op("log", Reduce("sum", op("exp", x), node.keepdim))
            # A row whose greatest element is infinite must not become inf - inf.
            safe = op("where", op("eq", op("abs", top), math.inf), 0.0, top)
            return op("add", safe, op("log", Reduce("sum", op("exp", op("sub", x, safe)), node.keepdim)))
        case _:
            return _variance(node, x, choices.get("variance", "two_pass"))


def _top(x: Node, choices: Mapping[str, str]) -> Node | None:
    return None if choices.get("softmax_shift", "max") == "none" else Reduce("max", x)


def _variance(node: Recipe, x: Node, how: str) -> Node:
    n: Node = length_of(x)
    dof = n if node.parameter == 0.0 else op("sub", n, node.parameter)
    if how == "two_pass":
        gap = op("sub", x, op("div", Reduce("sum", x), n))
        return op("div", Reduce("sum", op("mul", gap, gap), node.keepdim), dof)
    # One pass: the mean of squares less the square of the mean; `shifted` takes the row's first element away first,
    # which keeps the two terms small where the row lies far from zero.
    y = x if how == "sum_of_squares" else op("sub", x, First(x))
    total = Reduce("sum", y, node.keepdim)
    squares = Reduce("sum", op("mul", y, y), node.keepdim)
    spread = op("sub", squares, op("div", op("mul", total, total), n))
    # The difference of two close numbers can come out a little below zero.
    spread = op("where", op("lt", spread, 0.0), 0.0, spread) if how == "shifted" else spread
    return op("div", spread, dof)
