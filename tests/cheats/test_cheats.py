"""Every known way to fool a judge of kernels, as a real candidate: each is refused by a verdict that names it."""

from __future__ import annotations

import pytest

from device.errors import InvalidOperator
from tests.cheats.conftest import Judge
from tests.cheats.sources import HERE
from tests.cheats.table import CHEATS, Cheat, ordered

ROWS = 34


def _name(cheat: Cheat) -> str:
    return f"{cheat.file.rpartition('.')[0]}-{cheat.operator}{'-paper' if cheat.mode == 'paper' else ''}"


@pytest.mark.parametrize("cheat", ordered(CHEATS), ids=_name)
def test_a_cheat_gets_the_verdict_that_names_it(cheat: Cheat, judge: Judge) -> None:
    """Outcome and summary are those of the table; a task that answers without work would pass is not accepted."""
    options = {"measure": cheat.measured, "mode": cheat.mode}
    if cheat.outcome == "task":
        with pytest.raises(InvalidOperator, match=cheat.words):
            judge(f"candidates/{cheat.file}", cheat.operator, **options)
        return
    data = judge(f"candidates/{cheat.file}", cheat.operator, **options)
    assert (data["outcome"], cheat.words in data["summary"]) == (cheat.outcome, True), data["summary"]
    assert data["measure"] is None


def test_every_row_of_the_list_has_a_candidate() -> None:
    """Rows 1 to 33 are all there, and every file is used.

    Row 34, exchanged legs and a weak baseline, is no candidate's doing: `test_legs` has a backend that does it.
    """
    assert set(range(1, ROWS)) <= {cheat.row for cheat in CHEATS}
    assert {path.name for path in (HERE / "candidates").iterdir()} == {cheat.file for cheat in CHEATS}
    assert all(cheat.file.startswith(f"{cheat.row:02}-") for cheat in CHEATS)
