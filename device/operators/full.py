"""The full-sized cases of operators, run on this machine as far as its memory and time go.

What is judged and timed on a CPU are smaller cases. Here the same definition, in float64 and as torch computes it, and
the expert kernel meet the sizes of an accelerator, under the judge's rules, once and untimed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from device import oracle
from device.backends import get as get_backend
from device.machine import cores
from device.operators.base import Case, Operator
from device.types import Limits
from device.verify import verify

COPIES = 8
"""Arrays in float64 as large as all inputs and outputs that are alive at once, at a rough guess."""

LIMITS = Limits(call_seconds=120.0, total_seconds=240.0, memory=4 << 30)
SEED = 20260101


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one full case."""

    operator: str
    case: str
    state: Literal["sound", "wrong", "left out"]
    detail: str


def needed(operator: Operator, case: Case) -> int:
    """Bytes that running the case takes, at a rough guess."""
    return COPIES * 8 * sum(spec.elements for spec in (*case.inputs, *operator.outputs(case)))


def look(operator: Operator, memory: int) -> Iterator[Seen]:
    """Run every full case that fits into so many bytes; say of the others why not."""
    backend = get_backend("cpu")
    build = None if operator.expert is None else backend.build(operator.expert, "cpp", LIMITS)
    for case in operator.full_cases:
        need = needed(operator, case)
        if need > memory:
            detail = f"needs about {need / 2**30:.1f} GiB of {memory / 2**30:.1f}"
            yield Seen(operator.name, case.name, "left out", detail)
            continue
        begin = time.monotonic()
        try:
            problem = oracle.pose(operator, case, SEED, "given", "hardened")
        except (RuntimeError, MemoryError) as error:  # torch says so of memory that it does not get
            yield Seen(operator.name, case.name, "wrong", f"the reference failed: {str(error).splitlines()[0]}")
            continue
        if problem is None:
            yield Seen(operator.name, case.name, "left out", "its answer would not be fair to an honest kernel")
            continue
        seconds, slack = time.monotonic() - begin, max(one.slack for one in problem.expected)
        detail = f"references {seconds:.1f} s" + (f", bound widened {slack:.2g} times" if slack > 1.0 else "")
        if build is not None and build.ok:
            seen = verify(backend, build, oracle.Suite((problem,), ()), LIMITS, cores(), repeat=False)
            if seen.failure is not None and (share := _share_of_torch(operator, problem)) > 1.0:
                detail = f"badly conditioned at this size: torch itself errs by {share:.3g} times what is allowed"
                yield Seen(operator.name, case.name, "left out", detail)
                continue
            if seen.failure is not None:
                yield Seen(operator.name, case.name, "wrong", f"the expert kernel: {seen.failure.message}")
                continue
            detail += f", expert kernel {seen.seconds:.1f} s"
        yield Seen(operator.name, case.name, "sound", detail)


def _share_of_torch(operator: Operator, problem: oracle.Problem) -> float:
    """Return the largest error of torch in the case's own types, in units of what is allowed."""
    own = oracle.answer(operator, problem.case, problem.inputs, problem.outputs, wide=False)
    return max(one.worst(answer) for one, answer in zip(problem.expected, own, strict=True))
