"""Full-sized cases, run where they fit: what is sound, what is wrong, what is left out and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from device.cli import device
from device.operators.base import Case, Operator, TensorSpec
from device.operators.full import look, needed
from tests.device.small import DOUBLE, kernel

LARGE = Case("full-0", (TensorSpec((300, 400)),))


def _operator(expert: Path | None = None) -> Operator:
    return replace(DOUBLE, full_cases=(LARGE,), expert_file=expert)


def test_what_a_case_takes_is_eight_arrays_in_float64() -> None:
    """120,000 elements in and as many out, 8 bytes each, 8 times."""
    assert needed(_operator(), LARGE) == 8 * 8 * 240_000


def test_a_case_that_does_not_fit_is_left_out_with_the_reason() -> None:
    (seen,) = look(_operator(), 1 << 20)
    assert (seen.state, seen.case) == ("left out", "full-0")
    assert "of 0.0" in seen.detail


@pytest.mark.parametrize(
    ("source", "state"), [(kernel(), "sound"), (kernel("    if (n > 100) return 0;\n"), "wrong"), (None, "sound")]
)
def test_the_expert_kernel_meets_the_full_size(tmp_path: Path, source: str | None, state: str) -> None:
    """A kernel that leaves large inputs undone is wrong there; without a kernel the reference alone is run."""
    expert = None
    if source is not None:
        expert = tmp_path / "kernel.cpp"
        expert.write_text(source)
    (seen,) = look(_operator(expert), 1 << 30)
    assert seen.state == state, seen.detail
    assert ("expert kernel" in seen.detail) == (source is not None)


def test_full_sizes_are_a_part_of_the_check() -> None:
    """Without --check the option says so, and nothing is run."""
    done = CliRunner().invoke(device, ["operators", "gelu", "--full"])
    assert done.exit_code == 2
    assert "--full goes with --check" in done.output
