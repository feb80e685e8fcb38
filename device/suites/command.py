"""One candidate against one task of a checkout, in whichever of the forms it has."""

from __future__ import annotations

from pathlib import Path

from device.errors import TaskRefused
from device.evaluate import evaluate as evaluate_operator
from device.machine import cores
from device.report import JudgeKey, SignedReport
from device.suites import judged
from device.suites.express import express
from device.suites.process import LIMITS, Process
from device.suites.tasks import Refusal, read
from device.types import Mode, RuleName


def evaluate(
    source: str, path: Path, name: str, *, form: str | None = None, language: str | None = None,
    mode: Mode = "hardened", rule: RuleName | None = None, seed: int, key: JudgeKey, measure: bool = True,
) -> SignedReport:  # fmt: skip
    """Judge a candidate on the task `name` of the checkout at `path`; the outcome is in the signed report.

    `language` is `cpp` for a kernel against `sagebook_kernel.h`, `python` for a plain module around one, `kernelbench`
    for a `ModelNew` that is run; None tells by the text. Raises SuiteUnreadable, UnknownTask, TaskRefused and what
    `device.evaluate` raises.
    """
    task = read(path, form).find(name)
    if isinstance(task, Refusal):
        raise TaskRefused(task.name, task.reason)
    if language is None:
        is_module = judged.read(source).outcome != "compile_error" and "class " in source
        language = ("python" if judged.plain(source) else judged.LANGUAGE) if is_module else "cpp"
    if language == judged.LANGUAGE and task.form == "kernelbench":
        return judged.judge(source, task, path, mode=mode, rule=rule, seed=seed, key=key, measure=measure)
    if language == judged.LANGUAGE:
        raise TaskRefused(task.name, f"candidates of {task.form} are kernels, in cpp or a plain Python module")
    with Process(LIMITS, cores()) as process:
        operator = express(process, task)
    return evaluate_operator(
        source, operator, language=language, mode=mode, rule=rule, seed=seed, key=key, measure=measure
    )
