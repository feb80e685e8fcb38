"""Torch's pointwise functions by name, written in the core functions that `expression` can print.

A definition follows the torch documentation of the function. Where torch passes not-a-number through, so does the
formula: comparisons are written so that a NaN takes the branch that keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from agent.models.search.ir import Apply, Const, Node

Arg = Node | float


def lift(value: Arg) -> Node:
    """A number as a constant node; a node as itself."""
    return Const(float(value)) if isinstance(value, (int, float)) else value


def op(name: str, *args: Arg) -> Node:
    """Apply a core function; constants alone are worked out here."""
    nodes = tuple(_as_operand(name, place, lift(arg)) for place, arg in enumerate(args))
    numbers = [node.value for node in nodes if isinstance(node, Const)]
    if len(numbers) == len(nodes) and name in _FOLD:
        return Const(_FOLD[name](*numbers))
    if name == "mul" and Const(1.0) in nodes:
        return nodes[1] if nodes[0] == Const(1.0) else nodes[0]
    if name == "add" and Const(0.0) in nodes:
        return nodes[1] if nodes[0] == Const(0.0) else nodes[0]
    return Apply(name, nodes)


_MASKS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})


def _as_operand(name: str, place: int, node: Node) -> Node:
    """A comparison used as a number becomes 1 or 0: a vector's mask is all ones, which is not the number one."""
    wants_mask = name in {"and", "or", "not"} or (name == "where" and place == 0)
    if isinstance(node, Apply) and node.op in _MASKS and not wants_mask:
        return Apply("where", (node, Const(1.0), Const(0.0)))
    if wants_mask and not (isinstance(node, Apply) and node.op in _MASKS):
        return Apply("ne", (node, Const(0.0)))
    return node


_FOLD: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else math.copysign(math.inf, a),
    "neg": lambda a: -a,
    "sqrt": math.sqrt,
    "rsqrt": lambda a: 1.0 / math.sqrt(a),
    "exp": math.exp,
    "log": math.log,
}


def _power(x: Arg, exponent: Arg) -> Node:  # noqa: PLR0911  (one return for each exponent)
    node = lift(exponent)
    if not isinstance(node, Const):
        return op("pow", x, node)
    match node.value:
        case 1.0:
            return lift(x)
        case 2.0:
            return op("mul", x, x)
        case 3.0:
            return op("mul", op("mul", x, x), x)
        case 0.5:
            return op("sqrt", x)
        case -0.5:
            return op("rsqrt", x)
        case -1.0:
            return op("div", 1.0, x)
        case _:
            return op("pow", x, node)


def _clamp(x: Arg, low: Arg | None = None, high: Arg | None = None) -> Node:
    node = lift(x)
    if low is not None:
        node = op("where", op("lt", node, low), low, node)
    if high is not None:
        node = op("where", op("gt", node, high), high, node)
    return node


def _sigmoid(x: Arg) -> Node:
    return op("div", 1.0, op("add", 1.0, op("exp", op("neg", x))))


def _silu(x: Arg) -> Node:
    return op("div", x, op("add", 1.0, op("exp", op("neg", x))))


def _gelu(x: Arg, approximate: str = "none") -> Node:
    if approximate == "tanh":
        cubic = op("add", x, op("mul", 0.044715, _power(x, 3.0)))
        inner = op("tanh", op("mul", math.sqrt(2.0 / math.pi), cubic))
    else:
        inner = op("erf", op("mul", x, math.sqrt(0.5)))
    return op("mul", op("mul", 0.5, x), op("add", 1.0, inner))


def _softplus(x: Arg, beta: Arg = 1.0, threshold: Arg = 20.0) -> Node:
    scaled = op("mul", x, beta)
    soft = op("div", op("log1p", op("exp", scaled)), beta) if beta != 1.0 else op("log1p", op("exp", scaled))
    return op("where", op("gt", scaled, threshold), x, soft)


def _elu(x: Arg, alpha: Arg = 1.0, scale: Arg = 1.0, input_scale: Arg = 1.0) -> Node:
    negative = op("mul", alpha, op("expm1", op("mul", x, input_scale)))
    return op("mul", scale, op("where", op("gt", x, 0.0), x, negative))


def _logsigmoid(x: Arg) -> Node:
    # min(x, 0) - log(1 + exp(-|x|)) does not overflow on either side.
    return op("sub", op("where", op("gt", x, 0.0), 0.0, x), op("log1p", op("exp", op("neg", op("abs", x)))))


def _logaddexp(a: Arg, b: Arg) -> Node:
    gap = op("neg", op("abs", op("sub", a, b)))
    return op("add", _maximum(a, b), op("log1p", op("exp", gap)))


def _maximum(a: Arg, b: Arg) -> Node:
    return op("where", op("or", op("gt", a, b), op("ne", a, a)), a, b)


def _minimum(a: Arg, b: Arg) -> Node:
    return op("where", op("or", op("lt", a, b), op("ne", a, a)), a, b)


def _hardsigmoid(x: Arg) -> Node:
    return op("div", _clamp(op("add", x, 3.0), 0.0, 6.0), 6.0)


def _sign(x: Arg) -> Node:
    return op("sub", op("where", op("gt", x, 0.0), 1.0, 0.0), op("where", op("lt", x, 0.0), 1.0, 0.0))


def _hardshrink(x: Arg, lambd: Arg = 0.5) -> Node:
    return op("where", op("le", op("abs", x), lambd), 0.0, x)


def _softshrink(x: Arg, lambd: Arg = 0.5) -> Node:
    low = op("where", op("lt", x, op("neg", lambd)), op("add", x, lambd), op("mul", x, 0.0))
    return op("where", op("gt", x, lambd), op("sub", x, lambd), low)


def _core(name: str) -> Callable[..., Node]:
    return lambda *args: op(name, *args)


def _scaled(name: str) -> Callable[..., Node]:
    return lambda a, b, alpha=1.0: op(name, a, op("mul", alpha, b))


FUNCTIONS: Mapping[str, Callable[..., Node]] = {
    **{
        name: _core(name)
        for name in ("exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "tanh", "erf", "erfc", "neg", "abs")
    },
    **{name: _core(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "floor", "ceil")},
    **{name: _core(name) for name in ("trunc", "round", "lt", "le", "gt", "ge", "eq", "ne", "where", "fmod", "hypot")},
    **{name: _core(name) for name in ("atan2", "mul", "div", "or", "and", "not")},
    "add": _scaled("add"),
    "sub": _scaled("sub"),
    "rsub": lambda a, b, alpha=1.0: op("sub", b, op("mul", alpha, a)),
    "subtract": _scaled("sub"),
    "multiply": _core("mul"),
    "divide": _core("div"),
    "true_divide": _core("div"),
    "negative": _core("neg"),
    "absolute": _core("abs"),
    "greater": _core("gt"),
    "less": _core("lt"),
    "pow": _power,
    "square": lambda x: _power(x, 2.0),
    "reciprocal": lambda x: op("div", 1.0, x),
    "exp2": lambda x: op("exp", op("mul", x, math.log(2.0))),
    "log2": lambda x: op("mul", op("log", x), 1.0 / math.log(2.0)),
    "log10": lambda x: op("mul", op("log", x), 1.0 / math.log(10.0)),
    "isnan": lambda x: op("ne", x, x),
    "isfinite": lambda x: op("lt", op("abs", x), math.inf),
    "isinf": lambda x: op("eq", op("abs", x), math.inf),
    "frac": lambda x: op("sub", x, op("trunc", x)),
    "sign": _sign,
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": lambda x, min=None, max=None: _clamp(x, min, max),  # noqa: A006  (torch's keyword names)
    "clip": lambda x, min=None, max=None: _clamp(x, min, max),  # noqa: A006  (torch's keyword names)
    "clamp_min": lambda x, min: _clamp(x, low=min),  # noqa: A006  (torch's keyword names)
    "clamp_max": lambda x, max: _clamp(x, None, max),  # noqa: A006  (torch's keyword names)
    "lerp": lambda a, b, weight: op("add", a, op("mul", weight, op("sub", b, a))),
    "addcmul": lambda x, a, b, value=1.0: op("add", x, op("mul", value, op("mul", a, b))),
    "addcdiv": lambda x, a, b, value=1.0: op("add", x, op("mul", value, op("div", a, b))),
    "logaddexp": _logaddexp,
    "masked_fill": lambda x, mask, value: op("where", mask, value, x),
    "sigmoid": _sigmoid,
    "silu": _silu,
    "swish": _silu,
    "gelu": _gelu,
    "relu": lambda x: _clamp(x, 0.0),
    "relu6": lambda x: _clamp(x, 0.0, 6.0),
    "leaky_relu": lambda x, negative_slope=0.01: op("where", op("gt", x, 0.0), x, op("mul", x, negative_slope)),
    "prelu": lambda x, weight: op("where", op("gt", x, 0.0), x, op("mul", x, weight)),
    "elu": lambda x, alpha=1.0: _elu(x, alpha),
    "celu": lambda x, alpha=1.0: _elu(x, alpha, 1.0, op("div", 1.0, alpha)),
    "selu": lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805),
    "softplus": _softplus,
    "mish": lambda x: op("mul", x, op("tanh", _softplus(x))),
    "softsign": lambda x: op("div", x, op("add", 1.0, op("abs", x))),
    "tanhshrink": lambda x: op("sub", x, op("tanh", x)),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: _clamp(x, min_val, max_val),
    "hardsigmoid": _hardsigmoid,
    "hardswish": lambda x: op("mul", x, _hardsigmoid(x)),
    "hardshrink": _hardshrink,
    "softshrink": _softshrink,
    "logsigmoid": _logsigmoid,
    "threshold": lambda x, threshold, value: op("where", op("gt", x, threshold), x, value),
}
"""Torch's name (function, method or `torch.nn.functional`) to its definition."""
