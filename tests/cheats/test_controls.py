"""Honest kernels, unusual but legal ones among them: the judge refuses none."""

from __future__ import annotations

import pytest

from tests.cheats.conftest import Judge
from tests.cheats.controls import CONTROLS, MEASURED
from tests.cheats.sources import HERE


@pytest.mark.parametrize("file", sorted(CONTROLS, key=lambda name: (CONTROLS[name], name)))
def test_an_honest_kernel_passes(file: str, judge: Judge) -> None:
    """The outcome is correct, and every strict check holds."""
    data = judge(f"controls/{file}", CONTROLS[file])
    assert data["outcome"] == "correct", data["summary"]


@pytest.mark.parametrize("file", MEASURED)
def test_an_honest_kernel_passes_when_it_is_timed(file: str, judge: Judge) -> None:
    """No check of the measurement refuses it either; on a shared machine its two runs may disagree now and then."""
    for _ in range(3):
        data = judge(f"controls/{file}", CONTROLS[file], measure=True)
        if data["outcome"] == "correct":
            break
    assert data["outcome"] == "correct", data["summary"]
    assert data["measure"]["latency_ms"] > 0


def test_there_are_controls_enough() -> None:
    """At least forty, each file used."""
    assert len(CONTROLS) >= 40
    assert {path.name for path in (HERE / "controls").iterdir()} == set(CONTROLS)
    assert set(MEASURED) <= set(CONTROLS)
