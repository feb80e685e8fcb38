"""The small language between a torch reference and a C++ kernel: what is computed, and nothing about how.

A node stands either for one element of a row (it depends on an input) or for one number of a whole row (it depends on
inputs only through reductions). Rows run along the last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

ViewKind = Literal["part", "swap", "every"]


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One change of view on an input: no data moves.

    `part` (k, of): the k-th of `of` equal parts of the last axis. `swap` (a, b): two axes, counted from the end (-1 is
    the last). `every` (start, step): each `step`-th element of the last axis.
    """

    kind: ViewKind
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Input:
    """An element of the input at `index`, seen through `views`, broadcast to where it is used."""

    index: int
    name: str
    views: tuple[ViewStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Attribute:
    """A scalar that the caller passes, by its place in the attribute array."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Const:
    """A number."""

    value: float


@dataclass(frozen=True, slots=True)
class Length:
    """The length of the last axis of `of`, as a number."""

    of: Input


@dataclass(frozen=True, slots=True)
class Apply:
    """A pointwise function of the core set (see `expression.CORE`)."""

    op: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """One number a row: `sum`, `prod`, `max`, `min`, `argmax` or `argmin` of `arg` along the last axis."""

    kind: str
    arg: Node
    keepdim: bool = True


@dataclass(frozen=True, slots=True)
class First:
    """`arg` at the first element of the row; one number a row."""

    arg: Node


@dataclass(frozen=True, slots=True)
class Recipe:
    """A named operation over rows that can be computed in several ways; `recipes.lower` turns it into other nodes."""

    name: str
    args: tuple[Node, ...]
    keepdim: bool = True
    parameter: float = 0.0


@dataclass(frozen=True, slots=True)
class MatMul:
    """Matrix product over the last two axes, broadcast over the others."""

    left: Node
    right: Node


Node = Input | Attribute | Const | Length | Apply | Reduce | First | Recipe | MatMul


def children(node: Node) -> tuple[Node, ...]:
    """The nodes that `node` is computed from."""
    match node:
        case Apply(args=args) | Recipe(args=args):
            return args
        case Reduce(arg=arg) | First(arg=arg):
            return (arg,)
        case MatMul(left=left, right=right):
            return (left, right)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Every distinct node, children before parents."""
    seen: set[Node] = set()

    def visit(at: Node) -> Iterator[Node]:
        if at in seen:
            return
        for child in children(at):
            yield from visit(child)
        if at not in seen:
            seen.add(at)
            yield at

    yield from visit(node)


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same tree with `change` applied to each node after its children."""
    memo: dict[Node, Node] = {}

    def visit(at: Node) -> Node:
        if at in memo:
            return memo[at]
        match at:
            case Apply(args=args) | Recipe(args=args):
                new: Node = replace(at, args=tuple(visit(arg) for arg in args))
            case Reduce(arg=arg) | First(arg=arg):
                new = replace(at, arg=visit(arg))
            case MatMul(left=left, right=right):
                new = MatMul(visit(left), visit(right))
            case _:
                new = at
        memo[at] = change(new)
        return memo[at]

    return visit(node)


def per_row(node: Node) -> bool:
    """Whether the node is one number a row (or a plain scalar) rather than one an element."""
    match node:
        case Input() | MatMul():
            return False
        case Recipe(name=name):
            return name in ROW_RECIPES
        case Reduce() | First():
            return True
        case _:
            return all(per_row(child) for child in children(node))


def scalar(node: Node) -> bool:
    """Whether the node is the same number everywhere: it depends on no input's elements."""
    return all(isinstance(at, (Attribute, Const, Length, Apply)) for at in walk(node))


ROW_RECIPES = frozenset({"logsumexp", "var"})
"""Recipes that give one number a row; the others give one an element."""


def inputs_of(node: Node) -> tuple[Input, ...]:
    """The distinct views of inputs in the tree, ordered by input, then as they occur."""
    found = [at for at in walk(node) if isinstance(at, Input)]
    return tuple(sorted(found, key=lambda at: at.index))


def attributes_of(node: Node) -> tuple[Attribute, ...]:
    """The attributes in the tree, in the order of the attribute array."""
    return tuple(sorted((at for at in walk(node) if isinstance(at, Attribute)), key=lambda at: at.index))


@dataclass(frozen=True, slots=True)
class Program:
    """An operator as understood: its one output, and how many inputs and attributes the caller passes."""

    name: str
    summary: str
    root: Node
    n_inputs: int
    n_attributes: int
    output_views: tuple[ViewStep, ...] = ()
