"""Finds the named row operations in a tree that spells them out, so that they can be computed in other ways.

A reference may call `softmax`, or write `e = (x - x.amax(-1, True)).exp(); e / e.sum(-1, True)`: both are one recipe.
"""

from __future__ import annotations

from agent.models.search.ir import Apply, Const, Length, MatMul, Node, Recipe, Reduce, inputs_of, rebuild
from agent.models.search.pointwise import op


def canonical(root: Node) -> Node:
    """The tree with every spelled-out softmax, log-sum-exp and variance replaced by its recipe."""
    return rebuild(rebuild(root, _recipe), _log_softmax)


def _recipe(node: Node) -> Node:  # noqa: PLR0911  (one return for each form)
    match node:
        case Apply("add", (Const(1.0), Apply("erf", (z,)))) | Apply("add", (Apply("erf", (z,)), Const(1.0))):
            return op("erfc", op("neg", z))  # `rows.lower` writes it as the choice says
        case Apply("sub", (Const(1.0), Apply("erf", (z,)))):
            return op("erfc", z)
        case Apply("div", (x, Const(value))) if value != 0.0:
            return Apply("mul", (x, Const(1.0 / value)))  # a product is several times faster than a quotient
        case Apply("div", (Apply("exp", (inner,)) as e, Reduce("sum", summed))) if e == summed:
            return Recipe("softmax", (_unshifted(inner),))
        case Apply("div", (MatMul(Apply("exp", (inner,)) as e, values), Reduce("sum", summed))) if e == summed:
            return MatMul(Recipe("softmax", (_unshifted(inner),)), values)
        case Apply("add", (Apply("log", (Reduce("sum", Apply("exp", (Apply("sub", (x, shift)),))),)), back)) if (
            back == shift and _is_top(shift, x)
        ):
            return Recipe("logsumexp", (x,))
        case Apply("add", (back, Apply("log", (Reduce("sum", Apply("exp", (Apply("sub", (x, shift)),))),)))) if (
            back == shift and _is_top(shift, x)
        ):
            return Recipe("logsumexp", (x,))
        case Apply("log", (Reduce("sum", Apply("exp", (x,))),)) if not _is_shifted(x):
            return Recipe("logsumexp", (x,))
        case Apply("div", (Reduce("sum", Apply("mul", (gap, again))), Length())) if gap == again:
            centred = _centred(gap)
            return node if centred is None else Recipe("var", (centred,))
        case _:
            return node


def _log_softmax(node: Node) -> Node:
    match node:
        case Apply("log", (Recipe("softmax", (x,)),)):
            return Apply("sub", (x, Recipe("logsumexp", (x,))))
        case Apply("sub", (Apply("sub", (x, shift)), Apply("log", (Reduce("sum", Apply("exp", (again,))),)))) if (
            again == Apply("sub", (x, shift)) and _is_top(shift, x)
        ):
            return Apply("sub", (x, Recipe("logsumexp", (x,))))
        case _:
            return node


def _is_top(shift: Node, x: Node) -> bool:
    """Whether `shift` is the row's maximum of x, perhaps with an infinite one replaced."""
    match shift:
        case Reduce("max", arg):
            return arg == x
        case Apply("where", (_, Reduce("max", arg), Const(0.0))) | Apply("where", (_, Const(0.0), Reduce("max", arg))):
            return arg == x
        case _:
            return False


def _is_shifted(x: Node) -> bool:
    return isinstance(x, Apply) and x.op == "sub" and _is_top(x.args[1], x.args[0])


def _unshifted(inner: Node) -> Node:
    return inner.args[0] if isinstance(inner, Apply) and _is_shifted(inner) else inner


def _centred(gap: Node) -> Node | None:
    """The x of `x - mean(x)`, or None."""
    match gap:
        case Apply("sub", (x, Apply("div", (Reduce("sum", arg), Length(of))))) if arg == x and of in inputs_of(x):
            return x
        case _:
            return None
