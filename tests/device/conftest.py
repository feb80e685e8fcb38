"""One judge for all tests of the house, with a key of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from device import JudgeKey, Limits, SignedReport, evaluate, load_judge_key
from tests.device.small import DOUBLE

Judge = Callable[..., SignedReport]
QUICK = Limits(call_seconds=1.0, memory=256 << 20)


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> JudgeKey:
    """A judge's key that no other test run has."""
    return load_judge_key(Path(tmp_path_factory.mktemp("key")) / "judge.key")


@pytest.fixture(scope="session")
def judge(key: JudgeKey) -> Judge:
    """Evaluate a source of `double` (or another operator) under short limits, without measuring."""

    def run(source: str, operator: Any = DOUBLE, **options: Any) -> SignedReport:
        settings: dict[str, Any] = {"seed": 1, "key": key, "measure": False, "limits": QUICK, **options}
        return evaluate(source, operator, **settings)

    return run
