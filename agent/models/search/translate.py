"""Reads the text of a torch reference and says what it computes, as an `ir.Program`.

The text is parsed, never executed. What it may hold: assignments, arithmetic, the pointwise functions of `pointwise`,
the row operations of `rows`, matrix products, and views of inputs. Anything else is refused by name (`NoRecipe`).
"""

from __future__ import annotations

import ast
import math
import operator
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agent.models.search import calls, row_loops, rows, views
from agent.models.search.calls import Arguments, Value
from agent.models.search.canonical import canonical
from agent.models.search.errors import NoRecipe
from agent.models.search.ir import (
    Apply,
    Attribute,
    Input,
    Length,
    MatMul,
    Node,
    Program,
    Recipe,
    Reduce,
    inputs_of,
    per_row,
    rebuild,
    walk,
)
from agent.models.search.pointwise import op
from agent.port import OperatorCard

_TENSOR = re.compile(r"\b(?:float|int|uint|bool|bfloat)\d*\[([\d, ]*)\]")
_DTYPE = re.compile(r"\b((?:float|int|uint|bool|bfloat)\d*)\[")
_BINARY: Mapping[type[ast.operator], tuple[str, object]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.Pow: ("pow", operator.pow),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
}
_COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_NAMES: Mapping[str, float] = {"pi": math.pi, "inf": math.inf, "e": math.e, "nan": math.nan}
_IGNORED = (ast.Import, ast.ImportFrom, ast.Pass, ast.Assert, ast.Delete)


_BY_NAME: Mapping[str, str] = {
    "argmax": "lambda x: x.argmax(dim=-1)",
    "argmin": "lambda x: x.argmin(dim=-1)",
    "transpose": "lambda x: x.transpose(-2, -1)",
    "matmul": "lambda a, b: a @ b",
    "attention": "lambda q, k, v: scaled_dot_product_attention(q, k, v)",
    "softmax": "lambda x: x.softmax(dim=-1)",
    "log_softmax": "lambda x: x.log_softmax(dim=-1)",
    "logsumexp": "lambda x: x.logsumexp(dim=-1)",
    "layer_norm": "lambda x, gamma, beta, *, eps: layer_norm(x, x.shape[-1:], gamma, beta, eps)",
    "rms_norm": "lambda x, gamma, *, eps: rms_norm(x, x.shape[-1:], gamma, eps)",
}
"""What an operator of a common name is taken to compute where its reference cannot be read; the judge decides."""


def translate(card: OperatorCard) -> Program:
    """What the card's reference computes. Raises `NoRecipe` when it holds something without a recipe."""
    try:
        return _read(card)
    except NoRecipe:
        if card.name not in _BY_NAME:
            raise
        return _read(replace(card, reference=_BY_NAME[card.name]))


def _read(card: OperatorCard) -> Program:
    strange = sorted({kind for line in card.cases for kind in _DTYPE.findall(line)} - {"float32"})
    if strange:
        raise NoRecipe(card.name, f"inputs of {', '.join(strange)}; kernels of float32 are composed here")
    reader = _Reader(card)
    value = reader.result()
    if isinstance(value, tuple):
        if len(value) != 1:
            raise NoRecipe(card.name, f"it has {len(value)} outputs, and kernels of one output are composed here")
        value = value[0]
    if isinstance(value, (str, int, float)) or value is None or not isinstance(value, Node):
        raise NoRecipe(card.name, "its reference does not end in one tensor")
    root, output_views = views.rows_last(card.name, value, reader.axes, reader.ranks)
    root = canonical(rebuild(root, _keep_dimensions))
    if any(isinstance(node, Apply) and node.op == "floordiv" for node in walk(root)):
        raise NoRecipe(card.name, "integer division of tensors")
    return Program(card.name, card.summary, root, reader.n_inputs, len(card.attributes), output_views)


def _keep_dimensions(node: Node) -> Node:
    # Rows are counted, not shaped, in a kernel: a reduction is one number a row whether its axis is kept or not.
    if isinstance(node, Reduce):
        return Reduce(node.kind, node.arg)
    if isinstance(node, Recipe):
        return Recipe(node.name, node.args, parameter=node.parameter)
    return node


@dataclass(slots=True)
class _Shape:
    """`x.shape`, before it is indexed."""

    of: Input


class _Reader:
    """Walks the statements of the reference with the values that its names stand for."""

    def __init__(self, card: OperatorCard) -> None:
        self.card = card
        self.axes: set[int] = set()
        self.loop: str | None = None
        self.function = self._function()
        arguments = self.function.args
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        inputs = [name for name in positional if name not in card.attributes]
        self.n_inputs = len(inputs)
        self.ranks = _ranks(card.cases, len(inputs))
        self.names: dict[str, Value | _Shape] = {name: Input(at, name) for at, name in enumerate(inputs)}
        self.names |= {name: Attribute(at, name) for at, name in enumerate(card.attributes)}

    def refuse(self, missing: str) -> NoRecipe:
        return NoRecipe(self.card.name, missing)

    def _function(self) -> ast.FunctionDef | ast.Lambda:
        try:
            tree = ast.parse(textwrap.dedent(self.card.reference))
        except SyntaxError as error:
            raise self.refuse(f"its reference is not Python that can be parsed ({error.msg})") from error
        named: list[ast.FunctionDef | ast.Lambda] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        functions = named or [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if not functions:
            raise self.refuse("its reference holds no function")
        by_name = [node for node in named if getattr(node, "name", "") in {"reference", self.card.name}]
        return (by_name or functions)[0]

    def result(self) -> Value:
        if isinstance(self.function, ast.Lambda):
            return self._plain(self.function.body)
        for statement in self.function.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self._plain(statement.value)
            self._statement(statement)
        raise self.refuse("its reference returns nothing")

    def _statement(self, statement: ast.stmt) -> None:  # noqa: PLR0911  (one return for each kind of statement)
        if isinstance(statement, _IGNORED):
            return
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return
        if row_loops.allocation(statement) is not None:
            return
        if isinstance(statement, ast.For):
            self._row_loop(statement)
            return
        if isinstance(statement, ast.Assign):
            value = self._value(statement.value)
            for target in statement.targets:
                self._bind(target, value)
            return
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._bind(statement.target, self._value(statement.value))
            return
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target
            self.names[name.id] = self._binary(self._plain(name), statement.op, self._plain(statement.value))
            return
        raise self.refuse(f"the statement `{ast.unparse(statement).splitlines()[0]}`")

    def _row_loop(self, loop: ast.For) -> None:
        if not (isinstance(loop.target, ast.Name) and ast.unparse(loop.iter).startswith("range(")) or self.loop:
            raise self.refuse(f"the loop `for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}`")
        self.loop = loop.target.id
        for statement in loop.body:
            match statement:
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=index)], value=value) if (
                    ast.unparse(index) == self.loop
                ):
                    self.names[name] = self._value(value)
                case _:
                    self._statement(statement)
        self.loop = None

    def _bind(self, target: ast.expr, value: Value | _Shape) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, tuple) and len(target.elts) == len(value):
            for part, item in zip(target.elts, value, strict=True):
                self._bind(part, item)
        else:
            raise self.refuse(f"the assignment to `{ast.unparse(target)}`")

    def _plain(self, node: ast.expr) -> Value:
        value = self._value(node)
        if isinstance(value, _Shape):
            raise self.refuse(f"the shape `{ast.unparse(node)}` as a value")
        return value

    def _value(self, node: ast.expr) -> Value | _Shape:  # noqa: C901, PLR0911  (one return for each kind of syntax)
        match node:
            case ast.Constant(value=int() | float() | str() | None | bool() as constant):
                return constant
            case ast.Name(id=name) if name in self.names:
                return self.names[name]
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return tuple(self._plain(item) for item in elts)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self._plain(operand)
                return -value if isinstance(value, (int, float)) else op("neg", self._node(value, operand))
            case ast.UnaryOp(op=ast.Invert() | ast.Not(), operand=operand):
                return op("not", self._node(self._plain(operand), operand))
            case ast.BinOp(left=left, op=kind, right=right):
                return self._binary(self._plain(left), kind, self._plain(right))
            case ast.Compare(left=left, ops=[kind], comparators=[right]) if type(kind) in _COMPARE:
                sides = (self._node(self._plain(left), left), self._node(self._plain(right), right))
                return op(_COMPARE[type(kind)], *self._aligned(sides))
            case ast.Subscript(value=base, slice=index):
                return self._subscript(node, base, index)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(node, base, name)
            case ast.Call():
                return self._call(node)
            case _:
                raise self.refuse(f"the expression `{ast.unparse(node)}`")

    def _node(self, value: Value, source: ast.AST) -> Node:
        if isinstance(value, (int, float)):
            return op("mul", float(value), 1.0)
        if isinstance(value, Node):
            return value
        raise self.refuse(f"`{ast.unparse(source)}` used as a number")

    def _binary(self, left: Value, kind: ast.operator, right: Value) -> Value:
        if isinstance(kind, ast.MatMult) and isinstance(left, Node) and isinstance(right, Node):
            return MatMul(left, right)
        name, fold = _BINARY.get(type(kind), ("", None))
        if isinstance(left, (int, float)) and isinstance(right, (int, float)) and callable(fold):
            folded = fold(left, right)
            return folded if isinstance(folded, (int, float)) else None
        if not name or not isinstance(left, (int, float, Node)) or not isinstance(right, (int, float, Node)):
            raise self.refuse(f"the operation `{type(kind).__name__}` on these values")
        if name == "pow":
            return calls.pointwise(self.card.name, "pow", Arguments((left, right), {}))
        return op(name, *self._aligned((left, right)))

    def _aligned(self, values: Sequence[Node | float]) -> Sequence[Node | float]:
        """Refuses `x - x.sum(-1)`: without the kept axis it is broadcast along the wrong one."""
        nodes = [value for value in values if isinstance(value, Node)]
        if any(not per_row(node) for node in nodes):
            lost = [node for node in nodes if per_row(node) and not views.keeps_axis(node)]
            if lost:
                raise self.refuse("a reduction without keepdim=True combined with a whole tensor")
        return values

    def _subscript(self, node: ast.Subscript, base: ast.expr, index: ast.expr) -> Value:
        value = self._value(base)
        if self.loop and isinstance(value, Node) and row_loops.row_index(index, self.loop):
            return value
        if isinstance(value, _Shape) and ast.unparse(index) == "-1:":
            return (Length(value.of),)
        if isinstance(value, _Shape):
            return views.length(self.card.name, value.of, self._plain(index), self.ranks)
        if isinstance(value, tuple):
            at = self._plain(index)
            if isinstance(at, int):
                return value[at]
        if isinstance(value, Input):
            sliced = self._slice(index)
            if sliced is not None:
                return views.sliced(self.card.name, value, *sliced)
        if isinstance(value, Node) and per_row(value) and ast.unparse(index) in {"..., None", ":, None"}:
            return views.with_axis(value)
        raise self.refuse(f"the index `{ast.unparse(node)}`")

    def _slice(self, index: ast.expr) -> tuple[Value, Value, Value] | None:
        if not (isinstance(index, ast.Tuple) and len(index.elts) >= 2):
            return None
        *leading, last = index.elts
        if not isinstance(last, ast.Slice):
            return None
        if any(ast.unparse(item) not in {"...", ":"} for item in leading):
            return None
        ends = (last.lower, last.upper, last.step)
        return tuple(None if end is None else self._plain(end) for end in ends)  # type: ignore[return-value]  # three

    def _attribute(self, node: ast.Attribute, base: ast.expr, name: str) -> Value | _Shape:
        if isinstance(base, ast.Name) and base.id in {"math", "torch", "np", "numpy"} and name in _NAMES:
            return _NAMES[name]
        value = self._value(base)
        if name == "shape" and isinstance(value, Node):
            return _Shape(inputs_of(value)[0])
        if name == "dtype":
            return None
        if name in {"T", "mT"} and isinstance(value, Node):
            return views.swapped(self.card.name, value, -2, -1)
        if name in {"values", "indices"} and isinstance(value, tuple) and len(value) == 2:
            return value[0 if name == "values" else 1]
        raise self.refuse(f"`{ast.unparse(node)}`")

    def _call(self, node: ast.Call) -> Value:  # noqa: C901  (function, then arguments, then meaning)
        function = node.func
        if self.loop and (product := row_loops.product(self.card.name, node, self._plain)) is not None:
            return product
        positional: list[Value] = []
        if isinstance(function, ast.Attribute):
            name = function.attr
            if not _is_module(function.value) or (
                isinstance(function.value, ast.Name) and function.value.id in self.names
            ):
                positional.append(self._plain(function.value))
        elif isinstance(function, ast.Name):
            name = function.id
        else:
            raise self.refuse(f"the call `{ast.unparse(node)}`")
        for argument in node.args:
            value = self._value(argument.value if isinstance(argument, ast.Starred) else argument)
            positional.append(None if isinstance(value, _Shape) else value)
        keywords = {k.arg: self._plain(k.value) for k in node.keywords if k.arg is not None and k.arg != "dtype"}
        if name in {"float", "double"} and positional and isinstance(positional[0], str):
            return float(positional[0])
        if isinstance(function, ast.Attribute) and ast.unparse(function).startswith("math."):
            return self._math(name, positional)
        if self.loop and name in rows.REDUCTIONS and len(positional) == 1 and "dim" not in keywords:
            keywords |= {"dim": -1, "keepdim": True}
        if (
            name == "where"
            and isinstance(function, ast.Attribute)
            and len(positional) == 3
            and not _is_module(function.value)
        ):
            positional = [positional[1], positional[0], positional[2]]  # x.where(condition, other)
        nodes = [value for value in positional if isinstance(value, (Node, int, float))]
        if len(nodes) == len(positional) and name not in calls.ROWWISE:
            self._aligned([*nodes])
        return calls.call(self.card.name, name, Arguments(tuple(positional), keywords), self.ranks, self.axes)

    def _math(self, name: str, positional: Sequence[Value]) -> Value:
        if all(isinstance(value, (int, float)) for value in positional) and hasattr(math, name):
            return float(getattr(math, name)(*positional))
        return calls.pointwise(self.card.name, name, Arguments(tuple(positional), {}))


def _is_module(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in {"torch", "F", "nn", "functional", "math", "special", "linalg"}


def _ranks(cases: Sequence[str], n_inputs: int) -> tuple[int | None, ...]:
    """The number of axes of each input where it is the same in every case, else None."""
    found: list[set[int]] = [set() for _ in range(n_inputs)]
    for line in cases:
        shapes = [match.group(1) for match in _TENSOR.finditer(line)]
        if len(shapes) != n_inputs:
            return (None,) * n_inputs
        for ranks, shape in zip(found, shapes, strict=True):
            ranks.add(len([size for size in shape.split(",") if size.strip()]))
    return tuple(next(iter(ranks)) if len(ranks) == 1 else None for ranks in found)


__all__ = ["Length", "translate"]
