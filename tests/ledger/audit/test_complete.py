"""What `why` must tell, in every form: conflicts, reversals, amendments, presentations, offers, hold-out, long tables."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings

from ledger import wire
from ledger.audit import words
from ledger.audit.markdown import why_markdown
from ledger.audit.provenance import why_prov
from ledger.audit.statistics import uplift
from ledger.audit.tree import why_lines
from ledger.bootstrap import client_of, memory_ledger
from ledger.domain import consolidation, course, decide, diff, explain
from ledger.domain import events as ev
from ledger.domain.holdout import Arms
from ledger.domain.policy import Policy
from ledger.domain.state import evolve, initial
from ledger.domain.trail import Entry
from ledger.domain.whereabouts import trail_of
from tests.ledger.audit.test_forms import stage
from tests.ledger.histories import GOVERNED, histories
from tests.ledger.play import Play


@pytest.fixture
def ledger():
    """`x1` is resident, amended, reversed and reinstated at `s2`, adopted again as a resident, then loses a conflict."""
    lines = [
        {"record": "experience", "id": "x1", "title": "tails", "body": "the old text"},
        {"record": "experience", "id": "z", "title": "z", "body": "z"},
        *(stage(n, op, adopted=True) for n, op in enumerate(("softmax", "gelu", "matmul"), 1)),
        {"record": "rule", "experience": "x1", "text": "mask the tail", "tokens": 4},
        {
            "record": "stage", "id": "s4", "task": "t4", "operator": "argmax", "kind": "correctness", "retrieved": [],
            "adoptions": [{"experience": "x1", "adopted": True, "reason": "the rule was in context"}],
            "outcome": {"correct": True},
        },
    ]  # fmt: skip
    with client_of(memory_ledger(), actor="ann") as client:
        client.create_library("lib")
        client.import_trace("lib", [json.dumps(line).encode() + b"\n" for line in lines])
        yield client


def forms(ledger, name: str = "x1") -> dict[str, str]:
    """The answer as a tree, Markdown and the page, its tags taken out."""
    answer = ledger.why("lib", name)
    page = ledger._http.get(f"/libraries/lib/experiences/{name}")
    assert page.status_code == 200
    return {
        "tree": "\n".join(why_lines(answer)),
        "markdown": why_markdown(answer),
        "page": re.sub(r"<[^>]*>", "", page.text).replace("&#39;", "'").replace("&gt;", ">"),
    }


def prov(ledger, name: str = "x1"):
    return json.loads(why_prov(ledger.why("lib", name)).serialize(format="json"))


def test_the_rival_and_the_loser_of_a_conflict_are_named(ledger) -> None:
    """Open: with whom; settled: who lost, by whom and why; and `why-not` says that alone."""
    ledger.record_conflict("lib", wire.NewConflict(conflict="c1", first="x1", second="z", reason="opposite flags"))
    for form, text in forms(ledger).items():
        assert "c1 with z, recorded by ann: opposite flags; open, z is not resident" in text, form
    ledger.resolve_conflict("lib", "c1", loser="x1", reason="z was quicker")
    for form, text in forms(ledger).items():
        assert "by ann, x1 lost, z won: z was quicker" in text, form
        assert "it lost the conflict c1 with z" in text, form
    for form, text in forms(ledger, "z").items():
        assert "by ann, x1 lost, z won: z was quicker" in text, form
        assert "c1 with x1" in text, form
    told = ledger.why_not("lib", "x1")
    assert told.lines == ["it lost the conflict c1 with z, and stays out while that lives: opposite flags"]
    assert "tokens do not fit" not in told.answer
    assert told.conflicts[0]["settled"]["loser"] == "x1"


def test_why_not_is_one_answer_over_http_and_client(ledger) -> None:
    """The route, the client and the numbers in `why` agree; a resident lacks nothing; an earlier point answers as then."""
    told = ledger.why_not("lib", "z")
    raw = ledger._http.get("/v1/libraries/lib/experiences/z/why-not").json()
    assert wire.WhyNot.model_validate(raw) == told
    assert told.what_would_it_take == ledger.why("lib", "z")["what_would_it_take"]
    assert "3 more stages must adopt it" in told.lines
    resident = ledger.why_not("lib", "x1")
    assert (resident.resident, resident.what_would_it_take, resident.lines) == (True, None, [])
    early = ledger.why_not("lib", "x1", at=told.sequence - 15)
    assert not early.resident


def test_who_reversed_what_and_why_is_told_apart_from_its_reversal(ledger) -> None:
    """Every form says invalidated, reinstated, by whom, why, and what was restated because of which."""
    ledger.invalidate("lib", "stage:s2", "a stale answer was replayed")
    ledger.reinstate("lib", "stage:s2", "it was not")
    answer = ledger.why("lib", "x1")
    assert [(r["what"], r["actor"], r["reason"]) for r in answer["reversals"]] == [
        ("invalidated", "ann", "a stale answer was replayed"),
        ("reinstated", "ann", "it was not"),
    ]
    first, second = (r["sequence"] for r in answer["reversals"])
    assert [r["because"]["sequence"] for r in answer["restated"]] == [first, second]
    for form, text in forms(ledger).items():
        assert f"[{first}] invalidated stage:s2 by ann: a stale answer was replayed" in text, form
        assert f"[{second}] reinstated stage:s2 by ann: it was not" in text, form
        assert f"restated because [{first}] stage:s2 was invalidated" in text, form
        assert f"restated because [{second}] stage:s2 was reinstated" in text, form
    facts = prov(ledger)
    reversals = {k: v for k, v in facts["activity"].items() if k.startswith("sb:reversal.")}
    assert [v["prov:type"] for v in reversals.values()] == ["sb:invalidated", "sb:reinstated"]
    assert [v["sb:reason"] for v in reversals.values()] == ["a stale answer was replayed", "it was not"]
    assert [v["prov:activity"] for v in facts["wasInvalidatedBy"].values()] == [f"sb:reversal.{first}"]
    assert {v["prov:agent"] for v in facts["wasAssociatedWith"].values()} == {"sb:agent.ann"}


def test_an_experience_restated_by_another_s_reversal_names_the_reversal(ledger) -> None:
    """`x2` was resident in no stage of `s9`, yet its numbers rest on how many stages were scored."""
    ledger.record_experience("lib", wire.NewExperience(experience="x2", title="t", body="b"))
    ledger.import_trace("lib", [json.dumps(stage(9, "softmax", adopted=True) | {"retrieved": ["z"], "adoptions": [
        {"experience": "z", "adopted": True, "reason": "r"}]}).encode()])  # fmt: skip
    ledger.invalidate("lib", "stage:s1", "a cheat")
    told = ledger.why("lib", "x2")
    assert [(r["because"]["subject"], r["because"]["reason"]) for r in told["restated"]] == [("stage:s1", "a cheat")]


def test_a_difference_names_the_reversal_behind_the_restatement(ledger) -> None:
    """The invalidation comes first in the events, and is told with its reason."""
    before = ledger.library("lib").sequence
    done = ledger.invalidate("lib", "stage:s2", "a cheat")
    found = ledger.diff("lib", before)
    assert [(r.sequence, r.what, r.actor, r.reason) for r in found.reversals] == [
        (done.sequence, "invalidated", "ann", "a cheat")
    ]
    types = {e.sequence: e.type for e in ledger.events("lib")}
    change = next(c for c in found.changes if c.experience == "x1")
    assert [types[s] for s in change.events][:2] == ["stage.invalidated", "memory.restated"]


def test_an_eviction_names_the_fact_that_it_follows_from() -> None:
    """`b` leaves because of the conflict, which is its event too; `a`, which stays, has the conflict alone."""
    events = [
        (1, ev.ConflictRecorded(conflict="c", first="a", second="b", reason="r")),
        (2, ev.Consolidated(trigger="conflict", subject="c", budget=1, used=0, ranked=())),
        (3, ev.RuleEvicted(experience="b", subject="c", reason="r")),
        (4, ev.RuleEvicted(experience="d", subject="c", reason="r")),
    ]
    state = initial()
    for name in "ab":
        evolve(state, ev.ExperienceRecorded(experience=name, title="", body="0", stages=("correctness",), source=ev.Source(kind="person")))  # fmt: skip
    evolve(state, events[0][1])
    assert diff.movers(events, state.conflicts) == {"a": [1], "b": [1, 3], "d": [1, 4]}


def test_an_amendment_says_who_and_why_and_leaves_the_text_as_it_was_recorded(ledger) -> None:
    """The old body at the old sequence, the new one at its own."""
    ledger.amend_experience("lib", "x1", wire.AmendExperience(title="tails again", body="the new text", reason="typo"))
    origin = ledger.why("lib", "x1")["origin"]
    assert (origin["title"], origin["body_text"]) == ("tails", "the old text")
    (change,) = origin["amendments"]
    assert (change["actor"], change["reason"], change["body_text"]) == ("ann", "typo", "the new text")
    types = {e.sequence: e.type for e in ledger.events("lib")}
    assert types[change["sequence"]] == "experience.amended"
    for form, text in forms(ledger).items():
        assert f"amended [{change['sequence']}] by ann" in text, form
        assert "the old text" in text, form
        assert "the new text" in text, form
    assert len(prov(ledger)["wasDerivedFrom"]) > 0
    assert any(k.startswith("sb:amendment.") for k in prov(ledger)["activity"])


def test_the_adoption_of_a_resident_rule_leads_to_its_presentation(ledger) -> None:
    """`s4` retrieved nothing: the rule was in context, and the event that put it there is named."""
    update = ledger.why("lib", "x1")["value"][-1]
    types = {e.sequence: e.type for e in ledger.events("lib")}
    assert (update["stage"], update["offered"]) == ("s4", None)
    assert types[update["presented"]["sequence"]] == "stage.rules_presented"
    for form, text in forms(ledger).items():
        assert f"presented [{update['presented']['sequence']}] as one of 1 resident rules" in text, form


def test_the_frequency_s_course_and_the_admission_are_in_every_form(ledger) -> None:
    """After its admission `s4` used it: 0.9 * 1 + 0.1; three changes before, rank 1 of 1 then."""
    answer = ledger.why("lib", "x1")
    assert [c["stage"] for c in answer["frequency"]["course"]] == ["s1", "s2", "s3", "s4"]
    admitted = answer["admission"]["sequence"]
    for form, text in forms(ledger).items():
        for change in answer["frequency"]["course"]:
            assert f"[{change['sequence']}] {change['stage']}: {change['old']:.4f} -> {change['new']:.4f}" in text, form
        assert re.search(rf"dmitted by consolidation \[{admitted}\] after rule x1", text), form
        assert "rank 1 of 1: priority 0.1875" in text, form
        assert f"consolidation [{admitted}]: rank 1, priority 0.188" in text, form


def test_a_bound_is_printed_so_that_what_is_above_the_print_is_above_the_bound() -> None:
    """Rounded up to four digits, and as it is where it has no more."""
    least = {"value": 0.000123412, "frequency": 0.1, "tokens": 7}
    lack = {
        "retired": False, "no_residents": False, "value_short": None, "adoptions_missing": 0, "operators_missing": 0,
        "rule_missing": False, "conflicts": [], "above": [], "fits": False, "least": least,
    }  # fmt: skip
    (line,) = words.lacking_lines(lack)
    assert line == (
        "the least that admits it, the other numbers as they are: a value above 0.0001235, or a frequency above 0.1, "
        "or a rule of at most 7 tokens"
    )


def test_values_are_chained_in_prov(ledger) -> None:
    """Each value is derived from the one before, also across a reversal; the first from the experience."""
    ledger.invalidate("lib", "stage:s2", "a cheat")
    answer = ledger.why("lib", "x1")
    facts = prov(ledger)
    derived = {
        (d["prov:generatedEntity"], d["prov:usedEntity"])
        for d in facts["wasDerivedFrom"].values()
        if d["prov:generatedEntity"].startswith("sb:value.")
    }
    chain = [f"sb:value.{u['sequence']}" for u in answer["value"]] + [f"sb:value.{answer['restated'][0]['sequence']}"]
    assert derived == set(zip(chain, ["sb:experience.x1", *chain], strict=False))


def test_conditions_and_the_environments_with_evidence_are_told(ledger) -> None:
    """What it applies to, in words, and in JSON."""
    conditions = wire.Conditions(
        families=("reduction",), toolkit=">=8.3,<9", shapes=(wire.ShapeRange(size="last_axis", least=32),)
    )
    ledger.record_experience("lib", wire.NewExperience(experience="c", title="c", body="c", conditions=conditions))
    assert ledger.why("lib", "c")["conditions"]["families"] == ["reduction"]
    for form, text in forms(ledger, "c").items():
        assert "families reduction" in text, form
        assert "last_axis from 32 to any" in text, form


def why(play: Play, name: str):
    """From the events that the fold noted as bearing on it, as a library is asked."""
    entries = (Entry(n, "2026-12-01T00:00:00Z", "ann", play.events[n - 1]) for n in trail_of(play.state, name))
    return explain.why(play.state, name, entries, lambda _: "text")


def test_a_withheld_stage_is_told_with_its_score() -> None:
    """The rule was kept back from the judged stage `j`."""
    play = Play(Policy(min_adoptions=1, min_operators=1, holdout_rate=0.999999))
    play.record("a")
    play.played("s1", "softmax", adopted=["a"])
    play.rule("a", 40)
    play.task("t", "gelu")
    play.open("j", "t", "correctness", "judged")
    play.judge("j", "c", "correct")
    play.score("j")
    answer = why(play, "a")
    assert [(w["stage"], w["score"], w["counts"]) for w in answer["withheld"]] == [("j", 1.0, True)]
    assert isinstance(play.events[answer["withheld"][0]["sequence"] - 1], ev.RuleWithheld)
    assert "withheld from gelu correctness (j) at rate 0.999999: score 1.0000" in next(iter(words.holdout(answer)))


def test_uplift_is_part_of_the_answer() -> None:
    """Null where nothing was held out; else its numbers and its verdict, in words."""
    told = uplift(Arms("a", presented=[1.0] * 9, withheld=[0.0] * 9)).model_dump()
    (line,) = words.holdout({"uplift": told, "withheld": []})
    assert re.fullmatch(r"uplift \+1\.0000, 95 % interval \+0\.\d+ to \+1\.0000, from 9 stages .*: it helps", line)
    with client_of(memory_ledger(), actor="ann") as client:
        client.create_library("lib", policy={"holdout_rate": 0.5})
        client.record_experience("lib", wire.NewExperience(experience="a", title="a", body="a"))
        assert client.why("lib", "a")["uplift"] is None


def test_an_offer_that_moved_no_value_is_told_all_the_same() -> None:
    """In an open stage, and in one that was abandoned."""
    play = Play(Policy())
    play.record("a")
    for number in range(2):
        play.task(f"t{number}", "gelu")
        play.open(f"s{number}", f"t{number}")
        play.retrieve(f"s{number}", "a")
    play.decide("s0", {"a": False})
    play.take(decide.abandon_stage(play.state, "s0", "out of time"))
    answer = why(play, "a")
    assert [(u["stage"], u["status"]) for u in answer["unscored"]] == [("s0", "abandoned"), ("s1", "open")]
    first = "\n".join(why_lines({**answer, "uplift": None}))
    assert "gelu correctness (s0, abandoned): offered [6] as 1 of 1 for 'q'; not adopted [11]: because" in first


def test_an_offer_says_what_its_score_was_made_of() -> None:
    """Second in a pool of two by a fused relevance of 0.8 with a value of 0.4."""
    pool = (
        ev.PoolEntry(experience="b", relevance=1.0, value=0.0, score=1.0, lexical=7.0, dense=0.9),
        ev.PoolEntry(experience="a", relevance=0.8, value=0.4, score=1.0, lexical=3.5, dense=0.7),
    )
    event = ev.ExperiencesRetrieved(
        stage="s", query="tail masks", pool=pool, offered=("a", "b"), fusion="scores/0.6", model="mini@1"
    )
    told = course.offer("a", Entry(9, "", "ann", event))
    assert (told["pool_rank"], told["position"], told["lexical"], told["dense"], told["fusion"], told["model"]) == (
        2, 1, 3.5, 0.7, "scores/0.6", "mini@1",
    )  # fmt: skip
    assert words.offer(told) == (
        "offered [9] as 1 of 2, 2 in a pool of 2 for 'tail masks': relevance 0.800 of lexical 3.500 and dense 0.700 by "
        "scores/0.6 with mini@1; with value 0.4000 then a score of 1.000"
    )


def test_a_long_course_of_the_frequency_says_that_it_is_cut() -> None:
    """201 changes: the newest 200 are told, and that they are not all."""
    play = Play(Policy())
    play.record("a")
    for number in range(201):
        play.played(f"s{number}", "gelu", adopted=["a"])
    frequency = why(play, "a")["frequency"]
    assert (len(frequency["course"]), frequency["kept"]) == (200, 200)
    assert words.frequency(frequency).endswith("; its newest 200 changes")


@settings(max_examples=60, deadline=None)
@given(histories(moves=GOVERNED))
def test_of_any_library_every_experience_has_a_whole_answer_in_every_form(play: Play) -> None:
    """No form fails, a resident is placed where it was admitted and where it stands, and every sequence is an event."""
    for name, item in play.state.experiences.items():
        answer = {"library": "lib", "uplift": None, **why(play, name)}
        text = "\n".join(why_lines(answer))
        why_markdown(answer)
        why_prov(answer)
        if item.resident:
            assert answer["admission"]["fits"]
            assert answer["consolidation"]["fits"]
            assert answer["what_would_it_take"] is None
        else:
            assert answer["what_would_it_take"] is not None
        for sequence in map(int, re.findall(r"\[(\d+)\]", text)):
            assert 1 <= sequence <= len(play.events)
        moved = [i.get("update") or i.get("restated") for i in words.course(answer) if "reversal" not in i]
        assert (moved[-1].get("new", moved[-1].get("value")) if moved else 0.0) == item.value


def many(count: int, budget: int) -> Play:
    """`count` candidates of falling value; the last is short, so it alone of the later ones fits."""
    play = Play(Policy(min_adoptions=0, min_operators=0, budget_tokens=budget))
    names = [f"e{n:04}" for n in range(count)]
    play.record(*names)
    for number, name in enumerate(names):
        item = play.state.experiences[name]
        item.value, item.n = 1.0 - number / count / 2, 1
        item.rule, item.tokens = "1" * 64, 100
    play.state.scored["correctness"] = 1
    last = play.state.experiences[names[-1]]
    last.tokens, last.value = 20, 0.01
    play.take(consolidation.consolidate(play.state, "policy", "test"))
    return play


def test_beyond_500_candidates_rank_neighbours_and_margin_are_still_told() -> None:
    """10 rules fill the budget but for 20 tokens: the 600th is cold, the 700th fits what is left; both are placed."""
    play = many(700, 1020)
    table = next(e for e in play.events if isinstance(e, ev.Consolidated))
    assert table.candidates == 700
    assert len(table.ranked) == len(table.ranks) == 502
    cold = why(play, "e0599")["consolidation"]
    assert (cold["rank"], cold["candidates"], cold["fits"], cold["used_before"]) == (600, 700, False, 1000)
    assert (cold["above"]["experience"], cold["below"]["experience"]) == ("e0598", "e0600")
    assert cold["first_left_out"]["experience"] == "e0010"
    assert cold["margin_to_cut"] < 0
    answer = why(play, "e0699")
    assert answer["resident"]
    for line in (answer["admission"], answer["consolidation"]):
        assert (line["rank"], line["fits"], line["used_before"], line["used_after"]) == (700, True, 1000, 1020)
        assert (line["above"]["experience"], line["below"]) == ("e0698", None)
        assert line["first_left_out"]["experience"] == "e0010"
    assert "next consolidation" not in why(play, "e0599")["answer"]
    assert "at rank 600 of 700 its 100 tokens do not fit" in why(play, "e0599")["answer"]


def test_of_a_long_table_what_was_evicted_is_placed_as_it_was_when_it_still_held() -> None:
    """A resident below the gate is a candidate of the consolidation that evicts it, and of no later one."""
    play = many(700, 1020)
    state = play.state
    state.policy = Policy(min_adoptions=1, min_operators=0, budget_tokens=500)
    play.take(consolidation.consolidate(state, "policy", "test"))
    table = next(e for e in reversed(play.events) if isinstance(e, ev.Consolidated))
    assert [r.experience for r in table.ranked] == [p[2] for p in consolidation.newest(state)]
    assert len(consolidation.newest(state)) == 11
    assert len(consolidation.others(state, "none")) == 5
