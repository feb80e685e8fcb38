"""Suites of problems for the diagnosis tests, worked out once."""

from __future__ import annotations

import pytest

from device import operators, oracle
from device.oracle import Suite
from device.types import Limits
from tests.device.small import DOUBLE

LIMITS = Limits(call_seconds=20.0, memory=256 << 20)


@pytest.fixture(scope="session")
def double_suite() -> Suite:
    """The problems of `double`."""
    return oracle.Oracle().suite(DOUBLE, 7, "hardened", "hardened")


@pytest.fixture(scope="session")
def softmax_suite() -> Suite:
    """The problems of `softmax`."""
    return oracle.Oracle().suite(operators.get("softmax"), 7, "hardened", "hardened")
