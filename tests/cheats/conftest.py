"""One judge for all candidates, and every candidate compiled beforehand, two at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from device import JudgeKey, Limits, evaluate, load_judge_key
from device.languages import cpp, python
from tests.cheats.sources import HERE, language, operator, text

Judge = Callable[..., dict[str, Any]]
LIMITS = Limits(call_seconds=5.0, memory=256 << 20)
SEED = 7


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> JudgeKey:
    """A judge's key that no other test run has."""
    return load_judge_key(Path(tmp_path_factory.mktemp("key")) / "judge.key")


@pytest.fixture(scope="session")
def _compiled() -> None:
    """The cache of compiled kernels holds every candidate, so that each test only judges."""
    build = {"cpp": cpp.build, "python": python.build}
    files = [path for folder in ("candidates", "controls") for path in sorted((HERE / folder).iterdir())]
    with ThreadPoolExecutor(max_workers=2) as pool:
        for _ in pool.map(lambda path: build[language(path.name)](text(path), LIMITS), files):
            pass


@pytest.fixture(scope="session")
def judge(key: JudgeKey, _compiled: None) -> Judge:
    """Judge a file of this folder (`candidates/…` or `controls/…`) and return the report's data."""

    def run(file: str, task: str, **options: Any) -> dict[str, Any]:
        settings: dict[str, Any] = {"seed": SEED, "key": key, "measure": False, "limits": LIMITS, **options}
        return evaluate(text(HERE / file), operator(task), language=language(file), **settings).data

    return run
