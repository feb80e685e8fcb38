"""A library exported as a trace, and imports that broke off."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from msgspec.structs import replace

from ledger import errors, verdict, wire
from ledger.bootstrap import memory_ledger
from ledger.commands import experiences, governance, libraries
from ledger.commands.redaction import redact
from ledger.domain import events as ev
from ledger.domain.rederive import rederive
from ledger.service import Call
from ledger.trace_read import import_trace
from ledger.transfer import export_trace
from ledger.wire_proofs import Redaction
from tests.ledger.histories import CHANGED, histories
from tests.ledger.judge import Judge

CASES = Path(__file__).parents[2] / "cases" / "memory"
CALL = Call(actor="test")


@pytest.fixture
def ledger():
    opened = memory_ledger()
    yield opened
    opened.close()


def filled(ledger, name, case, lines=None):
    policy = json.loads((CASES / f"{case}.expected.json").read_text())["policy"]
    libraries.create(ledger, CALL, wire.NewLibrary(library=name, policy=policy))
    trace = (CASES / f"{case}.trace.jsonl").read_bytes().splitlines(keepends=True)
    import_trace(ledger, CALL, name, trace[:lines])
    return policy, trace


@pytest.mark.parametrize("case", ["04-seven-unused-updates", "08-random", "09-random", "11-random", "12-random"])
def test_an_exported_trace_imports_to_the_same_state(ledger, case):
    """Residents that came and went, retirements, every policy: the numbers are the same to the last bit."""
    policy, _ = filled(ledger, "one", case)
    libraries.create(ledger, CALL, wire.NewLibrary(library="two", policy=policy))
    import_trace(ledger, CALL, "two", export_trace(ledger, "one"))
    assert libraries.state_of(ledger, "two", None).experiences == libraries.state_of(ledger, "one", None).experiences


def test_an_import_that_broke_off_goes_on_where_it_stopped(ledger):
    """With resume, held records are passed over and the end is that of one whole import."""
    policy, trace = filled(ledger, "broken", "09-random", lines=80)
    done = import_trace(ledger, CALL, "broken", trace, resume=True)
    assert done.records == len(trace) - 80
    libraries.create(ledger, CALL, wire.NewLibrary(library="whole", policy=policy))
    import_trace(ledger, CALL, "whole", trace)
    assert (
        libraries.state_of(ledger, "broken", None).experiences == libraries.state_of(ledger, "whole", None).experiences
    )


def test_without_resume_a_repeated_record_is_refused_by_its_line(ledger):
    """The first record of the trace is in the library already."""
    _, trace = filled(ledger, "lib", "01-equal-split")
    with pytest.raises(errors.TraceInvalidError, match=r"^line 1: experience 'a' is recorded already"):
        import_trace(ledger, CALL, "lib", trace)


def test_resuming_with_another_text_under_a_known_id_is_refused(ledger):
    """The same id with another body is not the same record."""
    _, trace = filled(ledger, "lib", "01-equal-split")
    changed = json.loads(trace[0]) | {"body": "something else"}
    with pytest.raises(errors.TraceInvalidError, match="line 1"):
        import_trace(ledger, CALL, "lib", [json.dumps(changed).encode()], resume=True)


def test_an_invalidated_stage_is_not_exported(ledger):
    """The trace of a library tells what counts: 01 without its one stage leaves three untouched experiences."""
    policy, _ = filled(ledger, "one", "01-equal-split")
    governance.reverse(
        ledger, CALL, "one", wire.NewReversal(subject="stage:s0", reason="replayed answers"), "invalidate"
    )
    libraries.create(ledger, CALL, wire.NewLibrary(library="two", policy=policy))
    import_trace(ledger, CALL, "two", export_trace(ledger, "one"))
    two = libraries.state_of(ledger, "two", None).experiences
    assert {name: e.value for name, e in two.items()} == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert two == libraries.state_of(ledger, "one", None).experiences


def events_of(ledger, name):
    """The log without what a trace leaves to be made again."""
    return [r.event for r in ledger.recorded(name)]


def copied(ledger, name="one", **how):
    """Export, import into a library that is not there yet; the trace itself."""
    trace = list(export_trace(ledger, name))
    import_trace(ledger, CALL, "two", trace, create=True, **how)
    return trace


@pytest.mark.parametrize("case", sorted(p.name.split(".")[0] for p in CASES.glob("*.trace.jsonl")))
def test_a_trace_brings_its_policy_and_the_very_same_events(ledger, case):
    """Without a word on the policy the copy of each handed case is event for event the library that it was made from."""
    filled(ledger, "one", case)
    trace = copied(ledger)
    assert events_of(ledger, "two") == events_of(ledger, "one")
    assert {json.loads(line)["record"] for line in trace} <= {"library", "experience", "rule", "stage", "retire"}


def test_a_trace_into_a_library_of_another_policy_is_refused_by_the_fields_that_differ(ledger):
    """The line is the first; nothing is stored; with a policy of its own the import goes on under that."""
    filled(ledger, "one", "05-paper-preset" if (CASES / "05-paper-preset.trace.jsonl").exists() else "11-random")
    trace = list(export_trace(ledger, "one"))
    libraries.create(ledger, CALL, wire.NewLibrary(library="two", policy={"beta": 0.77}))
    with pytest.raises(errors.TraceInvalidError, match=r"^line 1: .*another policy.*beta"):
        import_trace(ledger, CALL, "two", trace)
    assert ledger.head("two") == 1
    import_trace(ledger, CALL, "two", trace, policy={"beta": 0.77})
    assert libraries.state_of(ledger, "two", None).policy["beta"] == 0.77


@pytest.mark.parametrize(
    "line",
    [b"{", b'{"record": "rule", "experience": "ghost", "text": "t", "tokens": 1}'],
    ids=["no JSON", "refused"],
)
def test_an_import_whose_first_record_is_refused_leaves_no_library(ledger, line):
    """Whether it can not be read or not be taken."""
    with pytest.raises(errors.TraceInvalidError, match="line 1"):
        import_trace(ledger, CALL, "new", [line], create=True)
    assert "new" not in ledger.libraries()


def test_a_library_record_stands_first(ledger):
    """Anywhere else it is refused by its line, and what came before is stored."""
    first = b'{"record": "experience", "id": "a", "title": "t"}'
    with pytest.raises(errors.TraceInvalidError, match=r"^line 2: .*first"):
        import_trace(ledger, CALL, "new", [first, b'{"record": "library", "policy": {}}'], create=True)
    assert libraries.state_of(ledger, "new", None).experiences.keys() == {"a"}


def test_many_records_share_a_transaction_and_a_refused_one_takes_none_with_it(ledger):
    """Of 600 records the 500th is refused: 499 are there."""
    lines = [json.dumps({"record": "experience", "id": f"e{i}", "title": "t"}).encode() for i in range(600)]
    lines[499] = lines[3]
    with pytest.raises(errors.TraceInvalidError, match=r"^line 500: experience 'e3' is recorded already"):
        import_trace(ledger, CALL, "new", lines, create=True)
    assert len(libraries.state_of(ledger, "new", None).experiences) == 499
    done = import_trace(ledger, CALL, "new", [*lines[:499], *lines[500:]], resume=True)
    assert done.records == 100


def test_resuming_refuses_a_record_that_differs_in_anything(ledger):
    """Another title, reason, model or number of tokens under a known id is another record."""
    _, trace = filled(ledger, "lib", "01-equal-split")
    records = [json.loads(line) for line in trace]
    rule = {"record": "rule", "experience": "a", "text": "r", "tokens": 5}
    retire = {"record": "retire", "experience": "b", "reason": "old"}
    more = [json.dumps(r).encode() for r in (rule, {**rule, "text": "s"}, retire)]
    import_trace(ledger, CALL, "lib", more)
    assert import_trace(ledger, CALL, "lib", [*trace, *more], resume=True).records == 0
    stage = next(r for r in records if r["record"] == "stage")
    changes = [{**records[0], "title": "another"}, {**stage, "model": "another"}, {**retire, "reason": "other"}]
    for changed in changes:
        with pytest.raises(errors.TraceInvalidError, match="line 1"):
            import_trace(ledger, CALL, "lib", [json.dumps(changed).encode()], resume=True)
    # Another length is another rule of the same experience, which a trace may bring.
    assert import_trace(ledger, CALL, "lib", [json.dumps({**rule, "tokens": 6}).encode()], resume=True).records == 1


def test_a_trace_tells_everything_that_people_decide(ledger):
    """Conflicts, supersession, amendments, reversals and changes of policy: the copy has the same events."""
    filled(ledger, "one", "09-random")
    names = list(libraries.state_of(ledger, "one", None).experiences)
    a, b, c, d = [n for n in names if not libraries.state_of(ledger, "one", None).experiences[n].retired][:4]
    governance.record_conflict(
        ledger, CALL, "one", wire.NewConflict(conflict="c1", first=a, second=b, reason="opposite flags")
    )
    governance.resolve_conflict(ledger, CALL, "one", "c1", wire.ConflictEnd(loser=b, reason="measured"))
    experiences.amend(ledger, CALL, "one", c, wire.AmendExperience(title="t", body="clearer", reason="was unclear"))
    governance.supersede(ledger, CALL, "one", d, wire.Supersession(by=a, reason="newer"))
    with ledger.reading("one") as state:
        scored = [s.id for s in state.stages.values() if s.status == "scored"]
    for subject in scored[:3]:
        given = wire.NewReversal(subject=f"stage:{subject}", reason="a cheat", by="judge")
        governance.reverse(ledger, CALL, "one", given, "invalidate")
    given = wire.NewReversal(subject=f"stage:{scored[1]}", reason="it was none")
    governance.reverse(ledger, CALL, "one", given, "reinstate")
    governance.change_policy(
        ledger, CALL, "one", wire.NewPolicy(policy={"budget_tokens": 300}, reason="short contexts")
    )
    governance.change_policy(ledger, CALL, "one", wire.NewPolicy(policy="no-consolidation", reason="a trial"))
    assert not libraries.show(ledger, "one").residents
    copied(ledger)
    assert events_of(ledger, "two") == events_of(ledger, "one")
    assert rederive(ledger.facts("two", until=ledger.head("two"))).first_difference is None


JUDGE = Judge()


class Real:
    """A random history with texts behind its hashes and the judge's signature on its verdicts."""

    def __init__(self, events):
        self.blobs = {}
        self.stages = {e.stage: e for e in events if isinstance(e, ev.StageStarted)}
        self.sources = {}
        judged = (ev.CandidateVerified, ev.CandidateMeasured)
        self.events = [
            made
            for i, event in enumerate(events)
            if not isinstance(event, judged)
            for made in self._made(event, [e for e in events[i + 1 : i + 3] if isinstance(e, judged)])
        ]

    def blob(self, text):
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.blobs[sha256] = text.encode()
        return sha256

    def _made(self, event, after):
        match event:
            case ev.ExperienceRecorded():
                return [replace(event, body=self.blob("body"))]
            case ev.RuleDistilled():
                return [replace(event, text=self.blob("rule"))]
            case ev.CandidateProposed():
                self.sources[event.candidate] = "kernel " + event.source
                return [replace(event, source=self.blob(self.sources[event.candidate]))]
            case ev.CandidateCompiled():
                return self._judged(event, [e for e in after if e.candidate == event.candidate])
        kind, _, name = getattr(event, "subject", "").partition(":")
        return [replace(event, subject=f"candidate:{self.blob('kernel ' + name)}") if kind == "candidate" else event]

    def _judged(self, compiled, facts):
        source, operator = self.sources[compiled.candidate], self.stages[compiled.stage].operator
        outcome = next((e.outcome for e in facts if isinstance(e, ev.CandidateVerified)), "compile_error")
        timed = [e for e in facts if isinstance(e, ev.CandidateMeasured)]
        timing = {"ms": timed[0].latency_ms, "noise": timed[0].noise_ms} if timed else {}
        report = JUDGE.report(source, operator, outcome, **timing)
        self.blob(report.report)
        named = {"stage": compiled.stage, "candidate": compiled.candidate}
        return verdict.facts(report, **named, source=self.blob(source), operator=operator)


@settings(max_examples=25, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(histories(moves=CHANGED))
def test_any_library_comes_back_from_its_trace_event_by_event(play):
    """Stages interleaved, judged or told, withheld rules, reversals, conflicts: the copy is the library, signatures and all."""
    real = Real(play.events)
    ledger = memory_ledger()
    try:

        def command(batch):
            batch.emit(real.events)
            batch.blobs.update(real.blobs)

        ledger.execute("one", CALL, command, lambda _: None, create=True)
        trace = copied(ledger)
        assert events_of(ledger, "two") == real.events
        assert import_trace(ledger, CALL, "two", trace, resume=True).records == 0
    finally:
        ledger.close()


def test_an_erased_text_is_told_as_erased(ledger):
    """The copy has the word in its place; a judged candidate without its source can not be told at all."""
    filled(ledger, "one", "01-equal-split")
    body = events_of(ledger, "one")[1].body
    redact(ledger, CALL, "one", Redaction(blobs=[body], reason="a secret"))
    assert json.loads(copied(ledger)[1])["body"] == "[erased]"
