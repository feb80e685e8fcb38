"""Reads the row by row form of a matrix product: `out[i] = (a[i, :, None] * b).sum(dim=0) + bias`, for each row i.

Within such a loop `a[i]` is a row, which the tree writes as an element of `a`; sums of products with a whole matrix are
matrix products.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from agent.models.search import views
from agent.models.search.ir import Input, MatMul, Node

Evaluate = Callable[[ast.expr], object]


def allocation(statement: ast.stmt) -> str | None:
    """The name that `name = x.new_empty(…)` (or zeros) sets aside for the result, else None."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Attribute(attr=call))) if call in {
            "new_empty",
            "new_zeros",
            "empty",
            "zeros",
            "empty_like",
            "zeros_like",
        }:
            return name
        case _:
            return None


def row_index(index: ast.expr, variable: str) -> bool:
    """Whether an index takes a row, or turns a row into a column: `[i]`, `[i, :]`, `[i, :, None]`, `[:, None]`."""
    text = ast.unparse(index).strip("()")
    return text in {variable, f"{variable}, :", f"{variable}, :, None", ":, None"}


def product(operator: str, node: ast.Call, evaluate: Evaluate) -> Node | None:
    """The matrix product that `(a[i, :, None] * b).sum(dim=0)` or `(b * a[i]).sum(dim=-1)` stands for, else None."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.BinOp(left=left, op=ast.Mult(), right=right), attr="sum"),
            args=args,
            keywords=keywords,
        ):
            axis = ast.unparse(args[0] if args else keywords[0].value) if args or keywords else ""
        case _:
            return None
    if isinstance(left, ast.Name):
        left, right = right, left
    if not (isinstance(left, ast.Subscript) and isinstance(right, ast.Name)):
        return None
    row, matrix = evaluate(left), evaluate(right)
    if not isinstance(row, Node) or not isinstance(matrix, Input):
        return None
    as_column = ast.unparse(left.slice).strip("()").endswith("None")
    if axis == "0" and as_column:
        return MatMul(row, matrix)
    if axis in {"-1", "1"} and not as_column:
        return MatMul(row, views.swapped(operator, matrix, -2, -1))
    return None
