"""A library exported as a trace, and imports that broke off."""

import json
from pathlib import Path

import pytest

from ledger import errors, wire
from ledger.bootstrap import memory_ledger
from ledger.commands import experiences, governance, libraries
from ledger.service import Call
from ledger.trace import import_trace
from ledger.transfer import export_trace

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


def test_a_conflict_can_not_be_told_in_a_trace(ledger):
    """The refusal names the sequence and the way out."""
    libraries.create(ledger, CALL, wire.NewLibrary(library="lib"))
    for name in ("a", "b"):
        experiences.record(ledger, CALL, "lib", wire.NewExperience(experience=name, title=name, body=name))
    governance.record_conflict(
        ledger, CALL, "lib", wire.NewConflict(conflict="c1", first="a", second="b", reason="opposite flags")
    )
    with pytest.raises(errors.NotExpressibleError, match=r"sequence 4 .* conflict"):
        list(export_trace(ledger, "lib"))
