"""One judge for all candidates; they are compiled, two at a time, while the first of them are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from device import JudgeKey, Limits, evaluate, load_judge_key
from device.languages import cpp, python
from device.types import Build
from tests.cheats.controls import CONTROLS
from tests.cheats.sources import HERE, language, operator, text
from tests.cheats.table import CHEATS, ordered

Judge = Callable[..., dict[str, Any]]
LIMITS = Limits(call_seconds=5.0, memory=256 << 20)
SEED = 7


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> JudgeKey:
    """A judge's key that no other test run has."""
    return load_judge_key(Path(tmp_path_factory.mktemp("key")) / "judge.key")


@pytest.fixture(scope="session")
def _compiled() -> Iterator[dict[str, Future[Build]]]:
    """What will be in the cache of compiled kernels, by file, in the order in which the tests ask for it."""
    build = {"cpp": cpp.build, "python": python.build}
    files = [*(f"candidates/{cheat.file}" for cheat in ordered(CHEATS)), *(f"controls/{file}" for file in CONTROLS)]
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {file: pool.submit(build[language(file)], text(HERE / file), LIMITS) for file in files}


@pytest.fixture(scope="session")
def judge(key: JudgeKey, _compiled: dict[str, Future[Build]]) -> Judge:
    """Judge a file of this folder (`candidates/…` or `controls/…`) and return the report's data."""

    def run(file: str, task: str, **options: Any) -> dict[str, Any]:
        for future in _compiled.values() if options.get("measure") else (_compiled[file],):
            future.result()  # no compiler runs beside a measurement
        settings: dict[str, Any] = {"seed": SEED, "key": key, "measure": False, "limits": LIMITS, **options}
        return evaluate(text(HERE / file), operator(task), language=language(file), **settings).data

    return run
