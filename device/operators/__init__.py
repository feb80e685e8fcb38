"""The bundled suites of operators. Importing it loads neither torch nor an operator; the first look-up loads these."""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from typing import Literal

from device.errors import UnknownOperator, UnknownSuite
from device.operators.base import Case, Operator, TensorSpec, reference_source

__all__ = ["SUITES", "Case", "Operator", "Suite", "TensorSpec", "get", "names", "reference_source"]

Suite = Literal["starter", "npukernelbench", "fused", "all"]
SUITES: tuple[Suite, ...] = ("starter", "npukernelbench", "fused", "all")
"""`starter` is what a run develops unless told otherwise; `all` is every suite, the starter's operators first."""

# A module offers one or more operators as `OPERATORS`; this is the order in which they are listed within a level.
_STARTER = (
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
def _suite(suite: str) -> dict[str, Operator]:
    if suite == "all":
        return {name: operator for part in SUITES[:-1] for name, operator in _suite(part).items()}
    modules: tuple[str, ...] = _STARTER
    if suite != "starter":
        modules = importlib.import_module(f"device.operators.{suite}").MODULES
        if suite == "fused":
            modules = tuple(f"fused.{name}" for name in modules)
    found: list[Operator] = []
    for module in modules:
        found.extend(importlib.import_module(f"device.operators.{module}").OPERATORS)
    return {operator.name: operator for operator in sorted(found, key=lambda operator: operator.level)}


def names(suite: str = "starter") -> tuple[str, ...]:
    """Names of the operators of one suite, by level and then in the suite's order; `all` gives the starter's first.

    Raises UnknownSuite when there is no such suite.
    """
    if suite not in SUITES:
        raise UnknownSuite(suite, SUITES)
    return tuple(_suite(suite))


def get(name: str) -> Operator:
    """Return the operator of that name, from whichever suite has it.

    Raises UnknownOperator, which names close matches, when there is none.
    """
    for suite in SUITES[:-1]:
        if name in _suite(suite):
            return _suite(suite)[name]
    known = _suite("all")
    lowered = {known_name.lower(): known_name for known_name in known}
    close = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered, n=3)]
    raise UnknownOperator(name, close, len(known))
