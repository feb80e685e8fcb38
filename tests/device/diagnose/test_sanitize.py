"""The `sanitize` tool: wrong kernels are reported with their line, honest ones are not, and the jail stays a jail."""

from __future__ import annotations

import pytest

from device import operators, oracle
from device.diagnose import sanitize as sanitizing
from device.diagnose.types import Sanitize
from device.oracle import Suite
from device.types import Limits
from tests.device.diagnose.conftest import LIMITS
from tests.device.diagnose.kernels import HONEST, WRONG, line_of
from tests.device.small import kernel


def sanitized(source: str, suite: Suite, limits: Limits = LIMITS) -> Sanitize:
    return sanitizing.sanitize(source, suite, limits, 2)[0]


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_kernel_is_reported_with_its_line(kind: str, double_suite: Suite) -> None:
    """What it is, on which line of the candidate, found by the sanitizer that is for it."""
    found, findings = sanitizing.sanitize(WRONG[kind], double_suite, LIMITS, 2)
    report = next((one for run in found.runs for one in run.reports if one.kind == kind), None)
    assert report is not None, found
    assert (report.file, report.line) == ("kernel.cpp", line_of(WRONG[kind]))
    sizes = {
        "heap-buffer-overflow": ("address", "write", 4),
        "stack-buffer-overflow": ("address", "write", 4),
        "heap-use-after-free": ("address", "read", 4),
        "use-after-poison": ("address", "write", 4),
        "signed-overflow": ("undefined", None, None),
        "misaligned-access": ("undefined", "read", None),
        "data race": ("thread", "write", 4),
    }
    seen = (report.sanitizer, report.access, report.size)
    assert seen == sizes[kind] or (kind == "data race" and seen == ("thread", "read", 4))
    finding = next(one for one in findings if one.kind == kind)
    assert finding.place == f"kernel.cpp:{report.line}"
    assert finding.advice


def test_an_address_beside_a_tensor_is_told_by_the_tensor(double_suite: Suite) -> None:
    """The judge's memory is closed around each tensor: right behind the output, and before the input."""
    (found, _) = sanitizing.sanitize(WRONG["use-after-poison"], double_suite, LIMITS, 2, kits=sanitizing.KITS[:1])
    assert found.runs[0].reports[0].message == "wrote 4 bytes 0 bytes after the end of output 0"
    before = kernel("    volatile float sum = a[-2];\n    (void)sum;\n")
    (found, _) = sanitizing.sanitize(before, double_suite, LIMITS, 2, kits=sanitizing.KITS[:1])
    assert found.runs[0].reports[0].message == "read 4 bytes 8 bytes before the begin of input 0"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_is_left_alone(name: str, double_suite: Suite) -> None:
    """Regions, barriers, critical sections, atomics, reductions, singles, sections, locks: no false alarm."""
    for run in sanitized(HONEST[name], double_suite).runs:
        assert (run.outcome, run.reports, run.message) == ("finished", (), "")
        assert run.problems == len(double_suite.problems)


@pytest.mark.parametrize("name", ["softmax", "matmul", "attention"])
def test_expert_kernels_are_left_alone(name: str) -> None:
    """Kernels with vectors, packing, several regions and barriers."""
    operator = operators.get(name)
    assert operator.expert is not None
    suite = oracle.Oracle().suite(operator, 5, "paper", "npukernelbench")
    for run in sanitized(operator.expert, suite).runs:
        assert (run.outcome, run.reports) == ("finished", ())
        assert run.problems > 0


def test_a_sanitized_kernel_is_confined_like_any_other(double_suite: Suite) -> None:
    """A file that it may not make, memory that it may not have, time that it may not take."""
    writes = kernel(
        '    FILE *f = fopen("/tmp/sagebook-was-here", "w");\n    b[0] = f ? 1 : 0;\n', includes="#include <cstdio>\n"
    )
    for run in sanitized(writes, double_suite).runs:
        assert (run.outcome, run.problems) == ("refused", 1)
    hog = kernel(
        "    for (int i = 0; i < 4096; ++i) {\n        char *more = new char[1 << 20];\n"
        "        for (int j = 0; j < 1 << 20; j += 4096) more[j] = 1;\n        b[0] = more[i];\n    }\n"
    )
    small = Limits(call_seconds=20.0, memory=64 << 20)
    for run in sanitized(hog, double_suite, small).runs:
        assert (run.outcome, run.problems) == ("resource", 1)
    hangs = kernel("    volatile int on = 1;\n    while (on) {\n    }\n")
    for run in sanitized(hangs, double_suite, Limits(call_seconds=0.5)).runs:
        assert (run.outcome, run.problems) == ("hang", 1)


def test_what_does_not_build_is_said(double_suite: Suite) -> None:
    """Both runs say why."""
    for run in sanitized(kernel("undeclared = 1;\n"), double_suite).runs:
        assert run.outcome == "not built"
        assert "undeclared" in run.message
