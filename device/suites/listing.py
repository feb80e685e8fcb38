"""Which tasks of a checkout can be judged here: each is run once in a confined process, or refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from device.errors import TaskRefused
from device.machine import cores
from device.suites.express import express
from device.suites.problems import open_reference, pose
from device.suites.process import LIMITS, Process
from device.suites.tasks import Reading, Task
from device.types import Limits

SEED = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """One task of a checkout: whether it can be judged, and in which forms or why not."""

    name: str
    level: int
    state: Literal["loads", "refused"]
    detail: str


def look(reading: Reading, limits: Limits = LIMITS) -> Iterator[Seen]:
    """Yield every task in order, the refused ones among them. Raises SandboxBroken."""
    refused = {one.name: one.reason for one in reading.refused}
    process: Process | None = None
    try:
        for name in sorted([*(task.name for task in reading.tasks), *refused], key=_order):
            task = reading.find(name)
            if not isinstance(task, Task):
                yield Seen(name, int(name.split("/")[0].removeprefix("level")), "refused", refused[name])
                continue
            if process is None:
                process = Process(limits, limits.threads or cores())
            seen = _look(process, task)
            if seen.state == "refused" and _spoiled(seen.detail):
                process.close()
                process = None
            yield seen
    finally:
        if process is not None:
            process.close()


def _look(process: Process, task: Task) -> Seen:
    try:
        if task.form == "npukernelbench":
            operator = express(process, task)
            return Seen(task.name, task.level, "loads", f"{len(operator.cases)} of {len(task.rows)} cases: cpp, python")
        open_reference(process, task, SEED)
        pose(process, task, SEED, "hardened", "hardened", count=2)
    except TaskRefused as refused:
        return Seen(task.name, task.level, "refused", refused.reason)
    return Seen(task.name, task.level, "loads", "ModelNew")


def _spoiled(detail: str) -> bool:
    """Whether a process may still be at work on the task, or gone."""
    return "in time and was ended" in detail or "process ended" in detail or "something else than answers" in detail


def _order(name: str) -> tuple[str, int, str]:
    level, _, rest = name.partition("/")
    number = rest.partition("_")[0]
    return level, int(number) if number.isdigit() else 0, rest
