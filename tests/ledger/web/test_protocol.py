"""What an agent does, from the first task to a resident rule, with reports that a judge has really signed."""

from __future__ import annotations

import json

import pytest

from ledger import errors, wire
from ledger.client import LedgerClient
from tests.ledger.judge import Judge
from tests.ledger.web.conftest import decided, opened, propose, record, start, told

FIRST = "// first\nint f() { return 1; }\n"
FASTER = "// faster\nint f() { return 2; }\n"


def _refused(error: type[errors.LedgerError], call: object, *args: object) -> errors.LedgerError:
    with pytest.raises(errors.LedgerError) as caught:
        call(*args)  # type: ignore[operator]
    assert type(caught.value) is error
    return caught.value


def test_the_whole_protocol(client: LedgerClient, judge: Judge) -> None:
    """Two stages of one task: a pass, then 2 ms to 1.5 ms; the adopted experience's rule becomes resident and is presented."""
    record(client, "tail", "other")
    start(client, "t1")
    assert opened(client, "t1", "t1.c").rules == []
    offers = client.retrieve("lib", "t1.c", "how does DataCopyPad treat a tail block")
    assert {o.experience for o in offers} == {"tail", "other"}
    assert all(o.body.startswith("DataCopyPad") and o.relevance > 0 and o.value == 0.0 for o in offers)
    candidate = propose(client, "t1.c", "c1", FIRST)
    assert (candidate.round, candidate.outcome) == (1, None)
    candidate = client.report("lib", "t1.c", "c1", judge.report(FIRST, "gelu", ms=2.0, noise=0.01))
    assert (candidate.outcome, candidate.latency_ms, candidate.reference_ms, candidate.noise_ms) == (
        "correct",
        2.0,
        2.0,
        0.01,
    )
    missing = _refused(errors.DecisionsMissingError, client.score_stage, "lib", "t1.c")
    assert missing.facts["missing"] == [o.experience for o in offers]
    stage = decided(client, "t1.c", tail=True, other=False)
    assert stage.undecided == []
    score = client.score_stage("lib", "t1.c")
    assert (score.score, score.adopted) == (1.0, ["tail"])
    assert {u.experience: (u.feedback, u.new) for u in score.updates} == {"tail": (1.0, 0.5), "other": (-0.2, -0.1)}
    assert score.awaiting_distillation == ["tail"]

    result = client.distill_rule("lib", "tail", wire.NewRule(text="Pad the tail.", tokens=4, tokenizer="quicktok"))
    assert result is not None
    assert (result.admitted, result.used) == (["tail"], 4)

    begun = opened(client, "t1", "t1.o", "optimization")
    assert [(r.experience, r.rule, r.tokens) for r in begun.rules] == [("tail", "Pad the tail.", 4)]
    assert [o.experience for o in client.retrieve("lib", "t1.o", "DataCopyPad tail block")] == ["other"]
    propose(client, "t1.o", "c2", FASTER)
    client.report("lib", "t1.o", "c2", judge.report(FASTER, "gelu", ms=1.5, noise=0.01))
    decided(client, "t1.o", other=False, tail=True)
    client.diagnose(
        "lib", "t1.o", wire.Diagnosis(tool="perf", hypothesis="h", evidence="e", next_step="n", candidate="c2")
    )
    client.cost("lib", "t1.o", wire.Cost(kind="model", seconds=1.5, model="m", input_tokens=10, output_tokens=3))
    score = client.score_stage("lib", "t1.o")
    # (2 - 1.5) / 2, all of it to `tail`: N = 2, V = 2/3 * 1/2 + 1/3 * 1/4.
    assert score.score == 0.25
    assert {u.experience: u.new for u in score.updates}["tail"] == pytest.approx(1 / 3 + 1 / 12)
    task = client.finish_task("lib", "t1")
    assert (task.rounds, task.finished, task.solved) == (2, True, True)
    assert ([s.status for s in task.stages]) == ["scored", "scored"]
    assert client.verify("lib").ok
    assert client.rederive("lib").first_difference is None
    why = client.why("lib", "tail")
    assert why["resident"]
    # From the rule to the measurement, the report and the code.
    update = why["value"][-1]
    best = update["evidence"]["best"]
    assert (update["evidence"]["first"]["latency_ms"], best["latency_ms"]) == (2.0, 1.5)
    report = json.loads(client.blob("lib", best["report"]))
    assert report["measure"]["latency_ms"] == 1.5
    assert client.blob("lib", report["candidate"]["source_sha256"]).decode() == FASTER


@pytest.mark.parametrize(
    ("ms", "noise", "score"), [(1.0, 0.03, 0.5), (1.97, 0.03, -0.1), (1.9, 0.03, 0.05), (2.5, 0.0, -0.1)]
)
def test_an_optimization_is_scored_by_what_was_measured(
    client: LedgerClient, judge: Judge, ms: float, noise: float, score: float
) -> None:
    """From 2 ms with noise 0.04 to: half; 0.03 better, below the noise of 0.05; 0.1 better; slower."""
    start(client, "t")
    opened(client, "t", "c")
    propose(client, "c", "c1", FIRST)
    client.report("lib", "c", "c1", judge.report(FIRST, "gelu", ms=2.0, noise=0.04))
    client.score_stage("lib", "c")
    opened(client, "t", "o", "optimization")
    propose(client, "o", "c2", FASTER)
    client.report("lib", "o", "c2", judge.report(FASTER, "gelu", ms=ms, noise=noise))
    assert client.score_stage("lib", "o").score == pytest.approx(score)


@pytest.mark.parametrize("outcome", ["compile_error", "refused", "crash", "hang", "resource", "wrong"])
def test_each_way_to_fail_comes_back_as_what_it_is(client: LedgerClient, judge: Judge, outcome: str) -> None:
    """The judge's word stands on the candidate, with its summary, and the stage scores the failure."""
    start(client, "t")
    opened(client, "t", "c")
    propose(client, "c", "c1", FIRST)
    candidate = client.report("lib", "c", "c1", judge.report(FIRST, "gelu", outcome))
    assert (candidate.outcome, candidate.summary, candidate.latency_ms) == (outcome, f"gelu: {outcome}", None)
    assert client.score_stage("lib", "c").score == -0.1


def test_a_candidate_refused_before_it_was_built_is_not_said_to_have_been_built(
    client: LedgerClient, judge: Judge
) -> None:
    """A judge may refuse a source unbuilt: the event on the build says so."""
    start(client, "t")
    opened(client, "t", "c")
    propose(client, "c", "c1", FIRST)
    unbuilt = {"ok": False, "command": [], "seconds": 0.0, "log": "", "cached": False}
    candidate = client.report("lib", "c", "c1", judge.report(FIRST, "gelu", "refused", compile=unbuilt, verify=None))
    assert candidate.outcome == "refused"
    built = [e.payload["ok"] for e in client.events("lib") if e.type == "stage.candidate_compiled"]
    assert built == [False]


# --- reports that do not count -------------------------------------------------------------------------------------


@pytest.fixture
def waiting(client: LedgerClient) -> LedgerClient:
    """Candidate `c1` of stage `c` on `gelu` waits for its report."""
    start(client, "t")
    opened(client, "t", "c")
    propose(client, "c", "c1", FIRST)
    return client


def _rejected(client: LedgerClient, report: wire.Report, why: str) -> None:
    before = client.library("lib").sequence
    error = _refused(errors.ReportInvalidError, client.report, "lib", "c", "c1", report)
    assert why in str(error)
    assert client.library("lib").sequence == before
    assert client.task("lib", "t").candidates[0].outcome is None


def test_a_report_whose_text_was_changed(waiting: LedgerClient, judge: Judge) -> None:
    """`wrong` turned into `correct` no longer fits the signature."""
    true = judge.report(FIRST, "gelu", "wrong")
    forged = true.model_copy(update={"report": true.report.replace('"wrong"', '"correct"')})
    _rejected(waiting, forged, "signature does not match")


def test_a_report_signed_by_another_key(waiting: LedgerClient, judge: Judge) -> None:
    """The key that is named is not the one that signed."""
    forged = judge.report(FIRST, "gelu").model_copy(update={"judge_key": Judge().public})
    _rejected(waiting, forged, "signature does not match")


@pytest.mark.parametrize("field", ["signature", "judge_key"])
@pytest.mark.parametrize("value", ["", "AAAA", "not base64!", "é"])
def test_a_report_without_a_proper_signature(waiting: LedgerClient, judge: Judge, field: str, value: str) -> None:
    """Empty, short or not base64: refused, whatever the text says."""
    broken = judge.report(FIRST, "gelu").model_copy(update={field: value})
    _rejected(waiting, broken, "signature")


def test_a_signature_made_for_something_else(waiting: LedgerClient, judge: Judge) -> None:
    """The text signed without the format's line in front is not a report."""
    report = judge.report(FIRST, "gelu")
    bare = judge._key.sign(report.report.encode())
    import base64

    _rejected(
        waiting,
        report.model_copy(update={"signature": base64.b64encode(bare).decode()}),
        "signature does not match",
    )


def test_a_report_on_another_source(waiting: LedgerClient, judge: Judge) -> None:
    """The judge saw another text than the candidate's."""
    _rejected(waiting, judge.report(FASTER, "gelu", ms=1.0), "candidate 'c1' has source")


def test_a_report_on_another_operator(waiting: LedgerClient, judge: Judge) -> None:
    """A pass on an easy operator is none on this one."""
    _rejected(waiting, judge.report(FIRST, "add", ms=1.0), "operator 'add', the stage is on 'gelu'")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "sagebook.report/2"},
        {"outcome": "splendid"},
        {"verify": {"ok": False, "cases": 1, "passed": 0}},
        {"verify": None},
        {"compile": {"ok": False, "seconds": 1.0}},
        {"measure": {"latency_ms": "NaN", "reference_ms": 1.0, "noise_ms": 0.0}},
        {"measure": {"latency_ms": "Infinity", "reference_ms": 1.0, "noise_ms": 0.0}},
        {"measure": {"latency_ms": -1, "reference_ms": 1.0, "noise_ms": 0.0}},
        {"measure": {"latency_ms": 0, "reference_ms": 1.0, "noise_ms": 0.0}},
        {"measure": {"latency_ms": 1.0, "reference_ms": 1.0, "noise_ms": -0.1}},
        {"candidate": {}},
        {"device": None},
    ],
    ids=lambda changes: json.dumps(changes)[:40],
)
def test_a_signed_report_that_does_not_hold_together(
    waiting: LedgerClient, judge: Judge, changes: dict[str, object]
) -> None:
    """Another format, an unknown outcome, `correct` without its proof, numbers that no clock gives: signed or not, refused."""
    _rejected(waiting, judge.report(FIRST, "gelu", ms=1.0, **changes), "report")


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '"correct"'])
def test_a_signed_text_that_is_no_report(waiting: LedgerClient, judge: Judge, text: str) -> None:
    """The signature is good, the text is not an object with the report's fields."""
    _rejected(waiting, judge.sign(text), "report")


def test_a_second_report_on_a_candidate(waiting: LedgerClient, judge: Judge) -> None:
    """The better of two draws can not be chosen."""
    waiting.report("lib", "c", "c1", judge.report(FIRST, "gelu", ms=2.0))
    error = _refused(errors.ReportInvalidError, waiting.report, "lib", "c", "c1", judge.report(FIRST, "gelu", ms=1.0))
    assert "has a report already" in str(error)
    assert waiting.task("lib", "t").candidates[0].latency_ms == 2.0


def test_a_report_replayed_for_another_candidate(waiting: LedgerClient, judge: Judge) -> None:
    """The same text of source, in the same task and in another one: each candidate is judged itself."""
    report = judge.report(FIRST, "gelu", ms=2.0)
    waiting.report("lib", "c", "c1", report)
    propose(waiting, "c", "c2", FIRST)
    _refused(errors.ReportUsedError, waiting.report, "lib", "c", "c2", report)
    start(waiting, "t2")
    opened(waiting, "t2", "c9")
    propose(waiting, "c9", "c9", FIRST)
    error = _refused(errors.ReportUsedError, waiting.report, "lib", "c9", "c9", report)
    assert error.facts["candidate"] == "c1"
    waiting.report("lib", "c9", "c9", judge.report(FIRST, "gelu", ms=2.0))


def test_a_report_comes_while_its_stage_is_open(waiting: LedgerClient, judge: Judge) -> None:
    """Neither in another stage nor after the end."""
    waiting.abandon_stage("lib", "c", "cancelled")
    error = _refused(errors.StageClosedError, waiting.report, "lib", "c", "c1", judge.report(FIRST, "gelu"))
    assert error.facts == {"stage": "c", "stage_status": "abandoned"}
    opened(waiting, "t", "c-again")
    _refused(errors.UnknownCandidateError, waiting.report, "lib", "c-again", "c1", judge.report(FIRST, "gelu"))


# --- the rest of the protocol --------------------------------------------------------------------------------------


def test_no_route_takes_a_score(client: LedgerClient) -> None:
    """A number sent with the close is ignored at best: the score comes from the facts."""
    start(client, "t")
    opened(client, "t", "s", basis="reported")
    client.report_outcome("lib", "s", wire.ReportedOutcome(correct=False))
    answer = client._http.post("/v1/libraries/lib/stages/s/score", json={"score": 1.0})
    assert answer.json()["score"] == -0.1


@pytest.mark.parametrize("kind", ["correctness", "optimization"])
def test_an_outcome_by_hand_fits_its_stage(client: LedgerClient, kind: wire.StageKind) -> None:
    """`correct` for correctness, latencies for optimization: the other, both or neither is refused."""
    start(client, "t")
    opened(client, "t", "s", kind, "reported")
    right = {"correct": True} if kind == "correctness" else {"first_ms": 2.0, "best_ms": 1.0}
    for outcome in (
        {},
        {"correct": True, "first_ms": 1.0},
        {"best_ms": 1.0},
        {"first_ms": 1.0} if kind == "correctness" else {"correct": True},
    ):
        _refused(errors.InvalidInputError, client.report_outcome, "lib", "s", wire.ReportedOutcome(**outcome))
    client.report_outcome("lib", "s", wire.ReportedOutcome(**right))
    assert client.score_stage("lib", "s").score == (1.0 if kind == "correctness" else 0.5)


def test_an_abandoned_stage_is_kept_and_scores_nothing(client: LedgerClient) -> None:
    """Its offers stay in the log; no value, no count moves; the task goes on."""
    record(client, "a")
    start(client, "t")
    opened(client, "t", "s")
    client.retrieve("lib", "s", "DataCopyPad")
    decided(client, "s", a=True)
    stage = client.abandon_stage("lib", "s", "the device was lost")
    assert (stage.status, stage.score) == ("abandoned", None)
    item = client.experience("lib", "a")
    assert (item.value, item.retrievals, item.adoptions) == (0.0, 0, 0)
    opened(client, "t", "s2")


def test_an_interrupted_agent_finds_all_it_needs(client: LedgerClient, judge: Judge) -> None:
    """The task shows its open stage, what was offered and decided, and each candidate with its verdict."""
    record(client, "a", "b")
    start(client, "t")
    opened(client, "t", "s")
    client.retrieve("lib", "s", "DataCopyPad")
    decided(client, "s", a=True)
    propose(client, "s", "c1", FIRST)
    client.report("lib", "s", "c1", judge.report(FIRST, "gelu", "wrong"))
    propose(client, "s", "c2", FASTER)
    task = client.task("lib", "t")
    (stage,) = task.stages
    assert (stage.status, set(stage.retrieved), stage.undecided, stage.decided) == (
        "open",
        {"a", "b"},
        ["b"],
        {"a": True},
    )
    assert [(c.candidate, c.round, c.outcome) for c in task.candidates] == [("c1", 1, "wrong"), ("c2", 2, None)]
    assert client.blob("lib", task.candidates[1].source).decode() == FASTER


def test_a_lists_pages_add_up(client: LedgerClient) -> None:
    """Experiences by cursor, two a page, in the order in which they were recorded, also under a filter."""
    names = [f"n{i}" for i in range(7)]
    record(client, *names)
    url = "/v1/libraries/lib/experiences"
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = client._http.get(url, params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [item["experience"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == names
    told(client, "s1", n3=True)
    assert [e.experience for e in client.experiences("lib", awaiting_distillation=True)] == ["n3"]
    client.distill_rule("lib", "n3", wire.NewRule(text="rule", tokens=1))
    assert [e.experience for e in client.experiences("lib", resident=True)] == ["n3"]
    assert len(client.experiences("lib", resident=False)) == 6


def test_events_are_read_in_order_with_their_links(client: LedgerClient) -> None:
    """Each event's previous hash is the hash of the one before, from any place on; a page more than the log is empty."""
    record(client, "a", "b", "c")
    events = list(client.events("lib", page=2))
    assert [e.sequence for e in events] == [1, 2, 3, 4]
    assert events[0].previous_hash == "0" * 64
    assert [e.previous_hash for e in events[1:]] == [e.hash for e in events[:-1]]
    assert list(client.events("lib", after=2)) == events[2:]
    assert list(client.events("lib", after=99)) == []
    assert {e.actor for e in events} == {"tester"}


def test_state_as_of_a_sequence(client: LedgerClient) -> None:
    """Before its first score an experience stood at 0, and before it was recorded it was not there."""
    record(client, "a")
    told(client, "s", a=True)
    assert client.state("lib").experiences["a"].value == 0.5
    assert client.state("lib", at=2).experiences["a"].value == 0.0
    assert client.state("lib", at=1).experiences == {}
    error = _refused(errors.InvalidInputError, lambda: client.state("lib", at=999))
    assert "ends at" in str(error)
