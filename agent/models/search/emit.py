"""From a program and its choices to the source of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.models.search import emit_attention, emit_elementwise, emit_layout, emit_matmul, emit_reduction
from agent.models.search.ir import Program

_EMITTERS: Mapping[str, Callable[[Program, Mapping[str, str]], str]] = {
    "attention": emit_attention.emit,
    "elementwise": emit_elementwise.emit,
    "layout": emit_layout.emit,
    "matmul": emit_matmul.emit,
    "reduction": emit_reduction.emit,
}


def emit(family: str, program: Program, choices: Mapping[str, str]) -> str:
    """C++17 source that computes `program` in the way that `choices` (settled, see `space.settle`) say."""
    return _EMITTERS[family](program, choices)
