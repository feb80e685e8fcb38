"""The loop's small parts: budget, waits, token counts, reading reports and scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent import memory, reports, tokens
from agent.budget import Budget
from agent.errors import RoundsSpent, ScriptError, TimeSpent
from agent.models.scripted import ScriptedModel
from agent.port import Attempt, Context, Decision, Diagnosis, Proposal
from agent.retry import Backoff, Retries
from tests.agent.stand_in import CARDS, StandIn


def context(round_: int = 1, operator: str = "gelu") -> Context:
    return Context(CARDS[operator], "correctness", round_, 30, (), (), (), 0)


# --- budget and waits ----------------------------------------------------------------------------------------------


def test_rounds_used_before_an_interruption_stay_used() -> None:
    """A budget of 3 with 2 used has one round left, then none."""
    budget = Budget(3, used=2)
    budget.check(hurry=True)
    budget.take()
    assert budget.left == 0
    with pytest.raises(RoundsSpent, match="all 3 rounds"):
        budget.check(hurry=False)


def test_the_time_allowance_counts_only_in_a_hurry() -> None:
    """After 10 of 10 seconds nothing more is optimized; a correctness stage still goes on."""
    now = [100.0]
    budget = Budget(30, seconds=10.0, clock=lambda: now[0])
    now[0] = 109.9
    assert budget.allows(hurry=True)
    now[0] = 110.0
    budget.check(hurry=False)
    with pytest.raises(TimeSpent, match="10 s"):
        budget.check(hurry=True)


def test_waits_double_up_to_a_ceiling_and_sum_up_to_the_patience() -> None:
    """1 + 2 + 4 + 4 and a last 1 make 12 seconds."""
    assert list(Backoff(first=1.0, ceiling=4.0, patience=12.0).waits()) == [1.0, 2.0, 4.0, 4.0, 1.0]


def test_an_endpoint_that_names_its_wait_is_given_it_within_reason() -> None:
    """Three seconds are waited; an hour is cut to the ceiling; without a word the wait doubles."""
    retries, backoff = Retries(3), Backoff(first=0.5, ceiling=30.0)
    assert retries.wait(3.0, backoff) == 3.0
    assert retries.wait(3600.0, backoff) == 30.0
    assert [retries.take() and retries.wait(None, backoff) for _ in range(3)] == [0.5, 1.0, 2.0]
    assert not retries.take()


# --- tokens --------------------------------------------------------------------------------------------------------


def test_the_named_tokenizer_counts_as_its_public_table_says() -> None:
    """`hello world` is two tokens of o200k_base (24912 and 2375), and special tokens are read as text."""
    counter = tokens.BundledTokens()
    assert counter.name == "o200k_base"
    assert counter.count("hello world") == 2
    assert counter.count("<|endoftext|>") > 1
    assert not counter.approx


def test_the_fallback_counts_bytes_and_says_that_it_does() -> None:
    """Nine bytes (é has two) are three tokens; the name says that it is an estimate."""
    counter = tokens.ByteTokens()
    assert counter.count("caféteri") == 3
    assert counter.count("") == 1
    assert counter.approx
    assert "approx" in counter.name


# --- reports -------------------------------------------------------------------------------------------------------


def test_the_first_bad_element_is_the_evidence_of_a_wrong_answer() -> None:
    """Case, index, expected and got are what the next change starts from."""
    verdict = StandIn().judge("wrong", "gelu", seed=1)
    assert verdict.outcome == "wrong"
    assert verdict.evidence == (
        "wrong at case small, index [0, 3]: the stand-in says wrong; expected 1.0, got NaN, "
        "wrong in [0:4, 3:8] at the end of axis 1"
    )
    assert verdict.latency_ms is None


def test_the_compilers_text_is_the_evidence_of_a_compile_error() -> None:
    """The log comes through as it is."""
    verdict = StandIn().judge("compile_error", "gelu", seed=1)
    assert verdict.evidence == "kernel.cpp:3: error: expected ';'"
    assert (verdict.compile_seconds, verdict.device_seconds) == (0.5, 0.0)


def test_latencies_by_case_are_the_evidence_of_a_correct_kernel() -> None:
    """Mean, minimum and spread beside the reference."""
    verdict = StandIn().judge("correct 0.5", "gelu", seed=1)
    assert (verdict.latency_ms, verdict.reference_ms, verdict.noise_ms) == (0.5, 1.0, 0.001)
    assert "mean 0.5000 ms" in verdict.evidence
    assert "speedup 2.00" in verdict.evidence


def test_a_very_long_log_keeps_its_beginning_and_its_end() -> None:
    """The first error and the last line matter; what lies between is counted."""
    text = reports.evidence(
        {"outcome": "compile_error", "compile": {"log": "first" + "x" * 50_000 + "last"}, "summary": ""}
    )
    assert text.startswith("first")
    assert text.endswith("last")
    assert "characters left out" in text
    assert len(text) < 7000


# --- what is said to memory ----------------------------------------------------------------------------------------


def test_an_answer_can_be_read_back_with_its_decisions() -> None:
    """What the model said is written down whole, so that a cut between two steps loses no decision."""
    decision = Decision("doc-1", adopted=True, reason='because of "quotes"')
    proposal = Proposal("src", "x = 1", "h", (decision,), Diagnosis("judge", "h", "e", "n"), "query")
    assert memory.decisions_in(memory.answer(proposal)) == (decision,)


def test_the_answers_blob_is_found_again_in_the_diagnosis() -> None:
    """The name survives evidence of any length, and a similar line in the evidence does not."""
    last = Attempt(1, "correctness", "c", "s", "x", "h", "wrong", "wrong", "y" * 50_000)
    found = memory.diagnosis(Proposal("s", "c", "h"), last, "a" * 64)
    assert memory.answer_named_in(found.evidence) == "a" * 64
    assert memory.answer_named_in("no answer here") is None


# --- scripts -------------------------------------------------------------------------------------------------------


def test_a_script_answers_by_round_and_operator(tmp_path: Path) -> None:
    """Operators with lines of their own get those; sources may lie in files; after the end there is nothing more."""
    (tmp_path / "k.cpp").write_text("from a file", encoding="utf-8")
    lines = [
        {"source_file": "k.cpp", "change": "first"},
        {"source": "second", "decisions": [{"experience": "e", "adopted": False, "reason": "r"}], "query": "q"},
        {"operator": "add", "source": "for add"},
        {"title": "About tails", "rule": "Mask the tail."},
    ]
    path = tmp_path / "script.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    model = ScriptedModel.from_file(path)
    assert model.propose(context(1)).source == "from a file"
    second = model.propose(context(2))
    assert (second.source, second.query) == ("second", "q")
    assert second.decisions == (Decision("e", adopted=False, reason="r"),)
    assert model.propose(context(3)).source is None
    assert model.propose(context(1, "add")).source == "for add"
    assert model.distill("About tails", "", "", 50).text == "Mask the tail."


@pytest.mark.parametrize("line", ["{", '{"change": "no source"}', '["a list"]', '{"source_file": "missing.cpp"}'])
def test_a_script_that_can_not_be_read_names_its_line(tmp_path: Path, line: str) -> None:
    """The file and the line number are in the message."""
    path = tmp_path / "script.jsonl"
    path.write_text('{"source": "good"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(ScriptError, match=r"script\.jsonl, line 2"):
        ScriptedModel.from_file(path)


def test_a_script_that_is_not_there_is_named() -> None:
    """The path is in the message."""
    with pytest.raises(ScriptError, match="nowhere"):
        ScriptedModel.from_file(Path("nowhere.jsonl"))
