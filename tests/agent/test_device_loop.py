"""The loop with the real device: kernels are compiled, run, judged and timed here."""

from __future__ import annotations

import shutil

import pytest

from agent.errors import ConfigurationError
from agent.models.scripted import ScriptedModel
from agent.workbench import DeviceWorkbench
from ledger.client import LedgerClient
from tests.agent.conftest import LIBRARY, MakeLoop
from tests.agent.stand_in import answer

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, which scripts/setup installs")

FRAME = """#include "sagebook_kernel.h"
#include <cmath>
#include <cstdlib>
extern "C" int sagebook_kernel(const sb_tensor *in, int64_t n_in, sb_tensor *out, int64_t n_out, const double *, int64_t) {
%s
  return 0;
}
"""
COMPILE_ERROR = FRAME % "  int x = ;"
CRASH = FRAME % "  std::abort();"
WRONG = FRAME % "  *(float *)out[0].data = 42.0f;"


def test_a_task_on_the_real_device_records_every_outcome_as_it_is(client: LedgerClient, make_loop: MakeLoop) -> None:
    """A compile error, a crash and a wrong answer each come back as what they are; the expert's kernel passes."""
    bench = DeviceWorkbench()
    expert = bench.expert("gelu")
    assert expert is not None
    model = ScriptedModel(answer(source) for source in (COMPILE_ERROR, CRASH, WRONG, expert))
    result = make_loop(model, bench, budget=4).develop("gelu")
    assert result.solved
    assert result.best_ms is not None
    assert 0.0 < result.best_ms < 1000.0
    candidates = client.task(LIBRARY, "run.gelu").candidates
    assert [item.outcome for item in candidates] == ["compile_error", "crash", "wrong", "correct"]
    evidence = [
        attempt.evidence for attempt in make_loop(model, bench).journal.attempts(client.task(LIBRARY, "run.gelu"))
    ]
    assert "error:" in evidence[0]
    assert "expected" in evidence[2]
    assert "mean" in evidence[3]
    assert client.verify(LIBRARY).ok
    assert client.rederive(LIBRARY).first_difference is None


def test_the_card_tells_everything_but_the_hidden_cases() -> None:
    """Definition, visible cases, attributes in order and the header are there."""
    bench = DeviceWorkbench()
    card = bench.card("layer_norm")
    assert (card.level, card.family, card.attributes) == (2, "reduction", ("eps",))
    assert "sagebook_kernel" in card.abi
    assert "def " in card.reference
    assert any("(timed)" in line for line in card.cases)
    assert not any("hidden" in line for line in card.cases)


def test_an_unknown_operator_is_a_wrong_setting_with_close_names() -> None:
    """The way out is in the message."""
    with pytest.raises(ConfigurationError, match="softmax"):
        DeviceWorkbench().card("sofmax")
