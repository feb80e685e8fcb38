"""The bundled suite of operators. Importing it loads neither torch nor an operator; the first look-up loads these."""

from __future__ import annotations

import difflib
import importlib
from functools import cache

from device.errors import UnknownOperator
from device.operators.base import Case, Operator, TensorSpec, reference_source

__all__ = ["Case", "Operator", "TensorSpec", "get", "names", "reference_source"]

# A module offers one or more operators as `OPERATORS`; this is the order in which they are listed within a level.
_MODULES = (
    "level1.add",
    "level1.gelu",
    "level1.transpose",
    "level1.argmax",
    "level2.swiglu",
    "level2.softmax",
    "level2.layer_norm",
    "level2.rms_norm",
    "level2.logsumexp",
    "level3.matmul",
    "level3.matmul_bias_gelu",
    "level3.attention",
)


@cache
def _suite() -> dict[str, Operator]:
    found: list[Operator] = []
    for module in _MODULES:
        found.extend(importlib.import_module(f"device.operators.{module}").OPERATORS)
    return {operator.name: operator for operator in sorted(found, key=lambda operator: operator.level)}


def names() -> tuple[str, ...]:
    """Names of all operators, by level and then in the suite's order."""
    return tuple(_suite())


def get(name: str) -> Operator:
    """Return the operator of that name.

    Raises UnknownOperator, which names close matches, when there is none.
    """
    suite = _suite()
    if name not in suite:
        raise UnknownOperator(name, difflib.get_close_matches(name.lower(), suite, n=3), len(suite))
    return suite[name]
