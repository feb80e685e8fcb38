"""Prints pointwise trees as C++ expressions, over one float or over one vector of floats.

Text is the same for both where C++ and GCC's vector extensions agree (arithmetic, comparisons, `?:`); functions differ.
Subtrees that occur more than once become named temporaries.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from agent.models.search.ir import Apply, Attribute, Const, Input, Length, Node, children, per_row

_INFIX: Mapping[str, tuple[str, int]] = {
    "mul": ("*", 13),
    "div": ("/", 13),
    "add": ("+", 12),
    "sub": ("-", 12),
    "lt": ("<", 10),
    "le": ("<=", 10),
    "gt": (">", 10),
    "ge": (">=", 10),
    "eq": ("==", 9),
    "ne": ("!=", 9),
    "and": ("&", 8),
    "or": ("|", 6),
}
_STD: Mapping[str, str] = {
    **{
        name: name
        for name in ("exp", "log", "log1p", "expm1", "sqrt", "tanh", "erf", "erfc", "sin", "cos", "tan", "pow")
    },
    **{name: name for name in ("sinh", "cosh", "asin", "acos", "atan", "atan2", "floor", "ceil", "trunc", "hypot")},
    "abs": "fabs",
    "round": "nearbyint",
    "fmod": "fmod",
}
CORE = frozenset({*_INFIX, *_STD, "neg", "not", "where", "rsqrt"})
"""The functions that a pointwise tree may hold."""

POLYNOMIALS: Mapping[str, tuple[str, str]] = {
    "exp": ("exp", "exp_poly"),
    "tanh": ("exp", "tanh_poly"),
    "expm1": ("exp", "expm1_poly"),
    "erf": ("erf", "erf_poly"),
    "erfc": ("erf", "erfc_poly"),
    "log": ("log", "log_poly"),
    "log1p": ("log", "log1p_poly"),
}
"""Core function -> the choice that makes it a polynomial, and the helper's name."""

_ATOM = 20
_UNARY = 15


def literal(value: float) -> str:
    """A C++ float literal."""
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if math.isnan(value):
        return "NAN"
    text = repr(float(f"{value:.9g}"))
    return f"{text}f"


class Printer:
    """Prints trees of one loop body. Temporaries go to `emit`; helpers that the text calls are noted in `used`."""

    def __init__(
        self,
        *,
        vector: bool,
        load: Callable[[Input], str],
        named: Mapping[Node, str],
        length: Callable[[Length], str],
        choices: Mapping[str, str],
        emit: Callable[[str], None],
        used: set[str],
        prefix: str = "t",
    ) -> None:
        self.vector = vector
        self.load = load
        self.named: dict[Node, str] = dict(named)
        self.length = length
        self.choices = choices
        self.emit = emit
        self.used = used
        self.prefix = prefix
        self._uses: Counter[Node] = Counter()
        self._temporaries = 0

    def value(self, root: Node) -> str:
        """The expression for `root`, with whatever it shares already emitted."""
        self._count(root)
        return self._print(root)[0]

    def _count(self, node: Node) -> None:
        self._uses[node] += 1
        if self._uses[node] == 1 and node not in self.named:
            for child in children(node):
                self._count(child)

    def _print(self, node: Node) -> tuple[str, int]:
        if node in self.named:
            return self.named[node], _ATOM
        text, strength = self._fresh(node)
        shared = self._uses[node] > 1 and isinstance(node, (Apply, Input))
        if not shared or (isinstance(node, Input) and not self.vector and "[" in text and self._uses[node] < 2):
            return text, strength
        name = f"{self.prefix}{self._temporaries}"
        self._temporaries += 1
        self.emit(f"const {self._type(node)} {name} = {text};")
        self.named[node] = name
        return name, _ATOM

    def _type(self, node: Node) -> str:
        return "auto" if self.vector or (isinstance(node, Apply) and node.op in _MASKS) else "float"

    def _fresh(self, node: Node) -> tuple[str, int]:
        match node:
            case Const(value):
                return literal(value), _ATOM if value >= 0 else _UNARY
            case Attribute(_, name):
                return name, _ATOM
            case Length():
                return self.length(node), _ATOM
            case Input():
                return self.load(node), _ATOM
            case Apply():
                return self._apply(node)
            case _:
                raise AssertionError(f"{node} was not lowered")

    def _apply(self, node: Apply) -> tuple[str, int]:
        name, args = node.op, node.args
        if name in _INFIX:
            sign, strength = _INFIX[name]
            left, right = self._at(args[0], strength), self._at(args[1], strength + 1)
            return f"{left} {sign} {right}", strength
        if name == "neg":
            return f"-{self._at(args[0], _UNARY + 1)}", _UNARY
        if name == "not":
            return f"!{self._at(args[0], _UNARY)}", _UNARY
        if name == "where":
            return self._where(args)
        if name == "rsqrt":
            return f"1.0f / {self._function('sqrt', args)}", 13
        return self._function(name, args), _ATOM

    def _at(self, node: Node, strength: int) -> str:
        text, own = self._print(node)
        return text if own >= strength else f"({text})"

    def _where(self, args: tuple[Node, ...]) -> tuple[str, int]:
        condition, yes, no = args
        texts = [self._at(yes, 4), self._at(no, 4)]
        if self.vector and per_row(condition) and not (per_row(yes) and per_row(no)):
            texts = [self._widened(node, text) for node, text in zip((yes, no), texts, strict=True)]
        return f"({self._at(condition, 5)} ? {texts[0]} : {texts[1]})", _ATOM

    def _widened(self, node: Node, text: str) -> str:
        if per_row(node):
            self.used.add("wide")
            return f"wide({text})"
        return text

    def _function(self, name: str, args: tuple[Node, ...]) -> str:
        wide = self.vector and not all(per_row(arg) for arg in args)
        texts = [self._at(arg, 1) for arg in args]
        one_number = all(per_row(arg) for arg in args)
        if name in POLYNOMIALS and not (one_number and self.vector):
            choice, helper = POLYNOMIALS[name]
            if self.choices.get(choice) == "polynomial":
                self.used.add(helper)
                return f"{helper}({', '.join(texts)})"
        if not wide:
            return f"std::{_STD[name]}({', '.join(texts)})"
        self.used.add(f"lanes:{_STD[name]}:{len(args)}")
        texts = [self._widened(arg, text) for arg, text in zip(args, texts, strict=True)]
        return f"lanes_{_STD[name]}({', '.join(texts)})"


_MASKS = frozenset({"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"})
