"""What holds for any history of a library."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ledger.domain import consolidation, credit, decide
from ledger.domain import events as ev
from ledger.domain.policy import PRESETS, Policy
from ledger.domain.rederive import OUTCOMES, rederive
from ledger.domain.state import State, evolve, frequency, initial
from ledger.store.codec import Unknown
from tests.ledger.domain.oracle import Oracle
from tests.ledger.histories import CHANGED, GOVERNED, REVERSALS, Play, histories, policies


def cases(count: int) -> settings:
    """So many random histories. Not shrunk: a history shrinks over minutes, and its moves can be read from the seed."""
    return settings(max_examples=count, phases=(Phase.explicit, Phase.generate))


UTILITY = policies().map(lambda p: msgspec.structs.replace(p, consolidation="utility"))
SPLIT = policies().map(lambda p: msgspec.structs.replace(p, credit="adopted_split"))


def folded(events: Iterable[ev.Event]) -> State:
    state = initial()
    for event in events:
        evolve(state, event)
    return state


def numbers(state: State) -> dict[str, tuple[object, ...]]:
    """What the arithmetic comes to, by id."""
    return {
        e.id: (
            pytest.approx(e.value, abs=1e-12),
            e.n,
            e.adoptions,
            sorted(e.operators),
            pytest.approx(frequency(e, state.eligible(e.stages)), abs=1e-12),
            e.resident,
        )
        for e in state.experiences.values()
    }


@cases(80)
@given(histories(moves=CHANGED))
def test_the_fold_of_the_log_is_the_re_derivation_of_its_facts(play: Play) -> None:
    """Replaying what was recorded and computing it anew agree in every field, and no outcome differs."""
    derivation = rederive(play.events)
    assert derivation.first_difference is None
    assert derivation.compared == sum(isinstance(e, OUTCOMES) for e in play.events)
    assert folded(play.events) == derivation.state == play.state


@cases(80)
@given(histories(UTILITY))
def test_the_ledger_agrees_with_a_second_reading_of_the_design(play: Play) -> None:
    """Scores, values, frequencies and residents equal those of an independent, slow calculation, stages interleaved or not."""
    oracle = Oracle(play.events)
    state = play.state
    assert {s.id: s.score for s in state.stages.values() if s.status == "scored"} == pytest.approx(oracle.scores)
    agrees(state, oracle)


@cases(80)
@given(histories(UTILITY, moves=REVERSALS))
def test_a_withdrawn_verdict_leaves_no_trace_in_the_numbers(play: Play) -> None:
    """However verdicts were withdrawn and given back, the numbers are those of the facts without the stages that do not count."""
    state = play.state
    agrees(state, Oracle(play.events, frozenset(s.id for s in state.stages.values() if s.invalid)))


@cases(40)
@given(histories(moves=CHANGED), st.integers(0, 2**20))
def test_a_reversal_that_is_reversed_was_never_there(play: Play, seed: int) -> None:
    """Withdrawing the verdict of any stage and giving it back ends in the same numbers and residents."""
    before, residents = numbers(play.state), set(play.state.residents)
    counting = [s.id for s in play.state.stages.values() if s.status == "scored" and not s.invalid]
    if not counting:
        return
    stage = random.Random(seed).choice(counting)
    play.reverse(f"stage:{stage}")
    play.reverse(f"stage:{stage}", back=True)
    assert numbers(play.state) == before
    assert set(play.state.residents) == residents


@cases(60)
@given(histories(UTILITY, moves=GOVERNED))
def test_rules_that_contradict_each_other_are_never_resident_together(play: Play) -> None:
    """After every batch: of an open conflict at most one side is hot; the loser of a settled one stays out while the winner lives."""
    state = initial()
    for i, event in enumerate(play.events):
        evolve(state, event)
        following = play.events[i + 1] if i + 1 < len(play.events) else None
        if isinstance(following, OUTCOMES):
            continue
        for conflict in state.conflicts.values():
            hot = {conflict.first, conflict.second} & set(state.residents)
            assert not (conflict.open and len(hot) == 2)
            if conflict.loser is not None and conflict.loser in hot:
                assert state.experiences[conflict.rival(conflict.loser)].retired


def agrees(state: State, oracle: Oracle) -> None:
    """Every number of every experience, and the residents."""
    assert set(state.residents) == oracle.residents
    for name, kept in oracle.known.items():
        item = state.experiences[name]
        assert item.value == pytest.approx(kept.value, abs=1e-9), name
        assert (item.n, item.adoptions) == (len(kept.looked_at), len(kept.adopted_in)), name
        assert item.operators == kept.operators, name
        assert frequency(item, state.eligible(item.stages)) == pytest.approx(oracle.frequency(name), abs=1e-9), name


@cases(60)
@given(histories(SPLIT))
def test_feedback_of_the_adopted_adds_up_to_the_stage_score(play: Play) -> None:
    """However many took part, a stage gives away its score once: nothing is gained by adopting more."""
    feedback: dict[str, list[float]] = {}
    scores: dict[str, float] = {}
    for event in play.events:
        if isinstance(event, ev.StageScored) and event.adopted:
            scores[event.stage] = event.score
        elif isinstance(event, ev.ValueUpdated) and event.adopted:
            feedback.setdefault(event.stage, []).append(event.feedback)
    assert {stage: sum(parts) for stage, parts in feedback.items()} == pytest.approx(scores)


@cases(60)
@given(histories(moves=GOVERNED))
def test_values_and_frequencies_stay_within_their_bounds(play: Play) -> None:
    """After every single event: values within the policy's bounds, frequencies from 0 to 1."""
    state = initial()
    for event in play.events:
        evolve(state, event)
        low, high = state.policy.value_bounds
        for item in state.experiences.values():
            assert low <= item.value <= high
            assert 0.0 <= frequency(item, state.eligible(item.stages)) <= 1.0


@cases(60)
@given(histories(UTILITY, moves=GOVERNED))
def test_residents_fit_the_budget_and_came_through_the_gate(play: Play) -> None:
    """No moment has more resident tokens than the budget after its consolidation; who is admitted passes, who stays is above 0."""
    state = initial()
    before: set[str] = set()
    for event in play.events:
        if isinstance(event, ev.Consolidated):
            before = set(state.residents)
            assert event.used == sum(r.tokens for r in event.ranked if r.resident) <= event.budget
            priorities = [r.priority for r in event.ranked]
            assert priorities == sorted(priorities, reverse=True)
            assert all(r.priority > 0.0 for r in event.ranked)
            assert all(r.priority == pytest.approx(r.value * r.frequency / r.tokens) for r in event.ranked)
        evolve(state, event)
        if isinstance(event, ev.RuleAdmitted):
            item = state.experiences[event.experience]
            assert event.experience not in before
            assert item.rule is not None
            assert not item.retired
            assert consolidation.gate(state.policy, consolidation.standing_of(state, item))
    tokens = sum(state.experiences[name].tokens or 0 for name in state.residents)
    assert tokens <= state.policy.budget_tokens
    assert all(state.experiences[name].value > 0.0 and not state.experiences[name].retired for name in state.residents)
    assert set(state.residents) == {e.id for e in state.experiences.values() if e.resident}


def _shuffled(events: list[ev.Event], dice: random.Random) -> list[ev.Event]:
    """The same facts, offers and decisions within a stage in another order, some of them said twice."""
    result: list[ev.Event] = []
    for event in events:
        if isinstance(event, ev.ExperiencesRetrieved) and event.offered:
            offered = dice.sample(event.offered, len(event.offered))
            result.append(msgspec.structs.replace(event, offered=(*offered, offered[0])))
        elif isinstance(event, ev.AdoptionDecided):
            # Insert anywhere within the decisions of this stage that stand directly before it.
            at = len(result)
            while isinstance(said := result[at - 1], ev.AdoptionDecided) and said.stage == event.stage:
                at -= 1
            result.insert(dice.randint(at, len(result)), event)
            if dice.random() < 0.3:
                result.append(event)
        else:
            result.append(event)
    return result


@cases(60)
@given(histories(moves=GOVERNED), st.integers(0, 2**20))
def test_order_and_repetition_within_a_stage_do_not_matter(play: Play, seed: int) -> None:
    """Offers and decisions count once whatever their order: values, counts, frequencies and residents are the same."""
    other = rederive(_shuffled(play.events, random.Random(seed)), play.state.policy).state
    assert numbers(other) == numbers(play.state)
    assert set(other.residents) == set(play.state.residents)


@cases(40)
@given(histories(st.just(Policy(min_adoptions=1, min_operators=1, consolidation="none"))))
def test_ids_are_only_names(play: Play) -> None:
    """Renaming every experience, so that ids sort the other way round, changes no number."""
    names = sorted(play.state.experiences)
    other = {name: f"n{len(names) - i:03}" for i, name in enumerate(names)}
    renamed = []
    for event in play.events:
        changes: dict[str, object] = {}
        if (name := getattr(event, "experience", None)) is not None:
            changes["experience"] = other[name]
        if isinstance(event, ev.ExperiencesRetrieved):
            changes["offered"] = tuple(other[name] for name in event.offered)
        renamed.append(msgspec.structs.replace(event, **changes))
    derived = rederive(renamed, play.state.policy).state
    assert numbers(derived) == {other[name]: got for name, got in numbers(play.state).items()}


@cases(40)
@given(histories(moves=GOVERNED), st.lists(st.integers(0, 400), min_size=1, max_size=5))
def test_unknown_events_move_the_position_and_change_nothing(play: Play, places: list[int]) -> None:
    """A log that a newer version wrote into reads the same, but for the sequence, and re-derives without a difference."""
    unknown = Unknown(name="moon.phase_changed", schema=9, payload=msgspec.Raw(b'{"experience":"a"}'))
    events = list(play.events)
    for place in places:
        events.insert(min(place, len(events)), unknown)
    read = folded(events)
    assert read.sequence == play.state.sequence + len(places)
    assert numbers(read) == numbers(play.state)
    assert list(read.residents) == list(play.state.residents)
    assert read.scored == play.state.scored
    for name, stage in play.state.stages.items():
        other = read.stages[name]
        for field in ("status", "score", "invalid", "rules", "retrieved", "decisions", "candidates"):
            assert getattr(other, field) == getattr(stage, field), (name, field)


@cases(40)
@given(histories(moves=GOVERNED), st.integers(0, 2**20))
def test_an_unknown_event_between_facts_is_no_difference(play: Play, seed: int) -> None:
    """Between two commands' batches an unknown fact leaves the re-derivation clean."""
    starts = [i for i, e in enumerate(play.events) if i and not isinstance(e, OUTCOMES)]
    at = random.Random(seed).choice([*starts, len(play.events)])
    unknown = Unknown(name="moon.phase_changed", schema=9, payload=msgspec.Raw(b"{}"))
    assert rederive([*play.events[:at], unknown, *play.events[at:]]).first_difference is None


@cases(40)
@given(histories(), st.integers(0, 2**20))
def test_a_changed_outcome_is_found_where_it_stands(play: Play, seed: int) -> None:
    """Changing, dropping or doubling one outcome is named at the first sequence that does not follow from the facts."""
    updates = [i for i, e in enumerate(play.events) if isinstance(e, ev.ValueUpdated)]
    scores = [i for i, e in enumerate(play.events) if isinstance(e, ev.StageScored)]
    dice = random.Random(seed)

    def first(events: list[ev.Event]) -> tuple[int, ev.Event | None, ev.Event | None]:
        found = rederive(events).first_difference
        assert found is not None
        return found.sequence, found.recorded, found.derived

    for places, name in ((updates, "new"), (scores, "score")):
        if not places:
            continue
        at = dice.choice(places)
        event, before, after = play.events[at], play.events[:at], play.events[at + 1 :]
        changed = msgspec.structs.replace(event, **{name: getattr(event, name) + 1e-6})
        assert first([*before, changed, *after]) == (at + 1, changed, event)
        assert first([*before, event, event, *after])[0] == at + 2
        # A stage without its score is one that was never closed: only the hash chain finds that it was.
        if name == "new":
            assert first([*before, *after])[0] == at + 1


@cases(40)
@given(histories(), st.integers(0, 2**20))
def test_a_removed_fact_is_a_difference_and_not_a_crash(play: Play, seed: int) -> None:
    """Without a decision or an outcome that a score needed, the score no longer follows; it is named at its sequence."""
    needed = [
        i
        for i, e in enumerate(play.events)
        if isinstance(e, ev.AdoptionDecided | ev.OutcomeReported) and play.state.stages[e.stage].status == "scored"
    ]
    if not needed:
        return
    at = random.Random(seed).choice(needed)
    fact = play.events[at]
    same = [e for e in play.events if type(e) is type(fact) and e.stage == fact.stage]  # type: ignore[attr-defined]
    if isinstance(fact, ev.AdoptionDecided):
        retrieved = play.state.stages[fact.stage].retrieved
        if fact.experience not in retrieved or [e.experience for e in same].count(fact.experience) > 1:
            return
    scored = next(i for i, e in enumerate(play.events) if isinstance(e, ev.StageScored) and e.stage == fact.stage)  # type: ignore[attr-defined]
    found = rederive([*play.events[:at], *play.events[at + 1 :]]).first_difference
    assert found is not None
    assert (found.sequence, found.recorded, found.derived) == (scored, play.events[scored], None)


@cases(25)
@given(histories(st.just(Policy(min_adoptions=1, min_operators=1))), st.sampled_from(sorted(PRESETS)))
def test_every_preset_re_derives_any_history(play: Play, name: str) -> None:
    """Under another policy the facts stand: scores of stages, offers and adoptions are those recorded or fewer, never new ones."""
    policy = PRESETS[name]
    state = rederive(play.events, policy).state
    assert state.policy == policy
    assert set(state.experiences) == set(play.state.experiences)
    low, high = policy.value_bounds
    for item in state.experiences.values():
        recorded = play.state.experiences[item.id]
        assert low <= item.value <= high
        assert item.adoptions == recorded.adoptions
        assert item.operators == recorded.operators
        assert item.n <= recorded.n
        if policy.credit == "none":
            assert item.value == 0.0
    if policy.consolidation == "none":
        assert not state.residents


@cases(40)
@given(histories(moves=CHANGED))
def test_an_abandoned_stage_leaves_no_trace_in_the_numbers(play: Play) -> None:
    """A stage that is opened, filled and abandoned at the end of a history changes no number."""
    before = numbers(play.state)
    play.task("late", "gelu")
    play.open("late", "late", "correctness")
    cold = [
        e.id for e in play.state.experiences.values() if not e.resident and not e.retired and "correctness" in e.stages
    ]
    play.retrieve("late", *cold)
    play.decide("late", dict.fromkeys(cold, True))
    play.tell("late", correct=True)
    play.take(decide.abandon_stage(play.state, "late", "cancelled"))
    assert numbers(play.state) == before
    assert credit.offered(play.state.stages["late"]) == tuple(cold)
