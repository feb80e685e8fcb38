"""Three hundred hostile candidates in a row, with the judge alive and the machine clean after each."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from device import JudgeKey
from tests.cheats.hostile import Traces, pool, run, traces

COUNT = 300


def test_three_hundred_hostile_candidates_leave_nothing(
    key: JudgeKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each no process, file, segment, descriptor or thread is left; an honest kernel is correct before and after.

    One text of each candidate, so that the compiler runs once for each; `scripts/hostile` draws changed ones too.
    """
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = run(COUNT, 1, 1, key=key, place=tmp_path)
    assert seen.problems == []
    assert (seen.judged, seen.honest) == (COUNT, 4)


def test_what_is_left_is_seen(tmp_path: Path) -> None:
    """A child, a file and a descriptor that were not there before are each named."""
    before = traces(tmp_path)
    (tmp_path / "left").write_text("here", encoding="utf-8")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = traces(tmp_path).more_than(before)
        assert child.stdin is not None
        child.stdin.close()
    assert [f"process {child.pid}", "file left"] == found[:2]
    assert found[2].endswith("descriptors")
    assert Traces(frozenset(), frozenset(), frozenset({"one"}), 0, 0).more_than(before)[-1] == "segment one"


def test_changed_texts_differ_and_are_drawn_again_by_the_seed() -> None:
    """Three variants of a candidate are three texts, the first as it is; the same seed gives the same ones."""
    one, two = (pool(random.Random(5), 3) for _ in range(2))
    assert one == two
    assert len({(candidate.source, candidate.task.name) for candidate in one}) == len(one)
