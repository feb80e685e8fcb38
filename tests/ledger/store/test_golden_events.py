"""Every event type and schema number ever written is read for ever as the same event.

One file each: `tests/golden/events/<name>.v<schema>.json`, the stored record. They are never edited. For a new type or
schema number add the event to EXPECTED and run this file: it writes the records that are missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.domain.events import (
    NAMES,
    AdoptionDecided,
    CandidateCompiled,
    CandidateMeasured,
    CandidateProposed,
    CandidateVerified,
    Conditions,
    ConflictRecorded,
    ConflictResolved,
    Consolidated,
    CostIncurred,
    Event,
    ExperienceAmended,
    ExperienceEmbedded,
    ExperienceRecorded,
    ExperienceRedacted,
    ExperienceRetired,
    ExperiencesRetrieved,
    ExperienceSuperseded,
    FrequencyChange,
    FrequencyUpdated,
    LibraryCreated,
    MemoryRestated,
    OutcomeReported,
    PolicyChanged,
    PoolEntry,
    Ranked,
    RedactedRecord,
    Restated,
    Revalidated,
    RevalidationRequired,
    RuleAdmitted,
    RuleDistilled,
    RuleEvicted,
    RulesPresented,
    RuleWithheld,
    Source,
    StageAbandoned,
    StageDiagnosed,
    StageInvalidated,
    StageReinstated,
    StageScored,
    StageStarted,
    TaskFinished,
    TaskStarted,
    ValueUpdated,
)
from ledger.domain.policy import Policy
from ledger.store import codec
from ledger.store.log import Draft

GOLDEN = Path(__file__).parents[2] / "golden" / "events"
A, B, C = "a" * 64, "b" * 64, "c" * 64

EXPECTED: dict[tuple[str, int], Event] = {
    ("library.created", 1): LibraryCreated(policy=Policy(beta=0.2), policy_name="mine", title="Vector kernels"),
    ("library.policy_changed", 1): PolicyChanged(
        policy=Policy(value_bounds=(-0.2, 1.0)), policy_name="paper", reason="compare with the paper"
    ),
    ("experience.recorded", 1): ExperienceRecorded(
        experience="e1",
        title="Double buffering",
        body=A,
        stages=("correctness", "optimization"),
        source=Source(kind="differential", name="gelu", texts=(B, C)),
        conditions=Conditions(
            families=("reduction",), dtypes=("float32",), languages=("cpp",), chips=("910B",), toolkit=">=8.5"
        ),
    ),
    ("experience.amended", 1): ExperienceAmended(experience="e1", title="Double buffers", body=B, reason="clearer"),
    ("experience.retired", 1): ExperienceRetired(experience="e1", reason="holds no longer"),
    ("experience.superseded", 1): ExperienceSuperseded(experience="e1", by="e9", reason="the newer one is exact"),
    ("experience.conflict_recorded", 1): ConflictRecorded(
        conflict="k1", first="e1", second="e2", reason="one buffer or two", proposed=True
    ),
    ("experience.conflict_resolved", 1): ConflictResolved(conflict="k1", loser=None, reason="different chips"),
    ("experience.revalidation_required", 1): RevalidationRequired(
        experience="e1", task="t1", chip="910B", toolkit="8.5.0"
    ),
    ("experience.revalidated", 1): Revalidated(experience="e1", stage="s1", chip="910B", toolkit="8.5.0"),
    ("experience.embedded", 1): ExperienceEmbedded(
        experience="e1", text=A, model="minilm", version="6", vector=B, dimensions=384
    ),
    ("experience.redacted", 1): ExperienceRedacted(
        reason="a person asked for it",
        experience="e1",
        blobs=(A, B),
        records=(RedactedRecord(sequence=7, fields=("payload.title", "actor"), digest=A),),
    ),
    ("task.started", 1): TaskStarted(
        task="t1",
        operator="gelu",
        level=1,
        model="search",
        budget=30,
        family="elementwise",
        dtype="float32",
        language="cpp",
        configuration={"arm": "sage"},
        environment={"fingerprint": A, "chip": "cpu"},
    ),
    ("task.finished", 1): TaskFinished(task="t1", solved=True, rounds=12, summary="1.9 times as fast"),
    ("stage.started", 1): StageStarted(stage="s1", task="t1", kind="optimization", operator="gelu", basis="reported"),
    ("stage.experiences_retrieved", 1): ExperiencesRetrieved(
        stage="s1",
        query="tail block",
        pool=(
            PoolEntry(experience="e1", relevance=7.3125, value=0.1, score=1.05),
            PoolEntry(experience="e2", relevance=0.1 + 0.2, value=-0.1, score=-0.0),
        ),
        offered=("e1",),
    ),
    ("stage.rules_presented", 1): RulesPresented(stage="s1", rules=("e3", "e4"), tokens=912),
    ("stage.rule_withheld", 1): RuleWithheld(stage="s1", experience="e5", rate=0.1),
    ("stage.adoption_decided", 1): AdoptionDecided(
        stage="s1", experience="e1", adopted=True, reason="fits the tail", candidate="c2"
    ),
    ("stage.candidate_proposed", 1): CandidateProposed(
        stage="s1",
        candidate="c2",
        round=2,
        source=A,
        language="cpp",
        change="threads = rows",
        hypothesis="fewer stalls",
        parent="c1",
    ),
    ("stage.candidate_compiled", 1): CandidateCompiled(
        stage="s1", candidate="c2", ok=True, seconds=1.25, report=B, judge="j", artefact=C
    ),
    ("stage.candidate_verified", 1): CandidateVerified(
        stage="s1",
        candidate="c2",
        ok=False,
        outcome="wrong",
        summary="tail",
        report=B,
        judge="j",
        mode="hardened",
        rule="hardened",
    ),
    ("stage.candidate_measured", 1): CandidateMeasured(
        stage="s1", candidate="c2", latency_ms=0.6, reference_ms=1.0, noise_ms=0.0123, device="cpu", report=B, judge="j"
    ),
    ("stage.diagnosed", 1): StageDiagnosed(
        stage="s1", tool="dump", hypothesis="tail overwritten", evidence=C, next_step="mask it", candidate="c2"
    ),
    ("stage.cost_incurred", 1): CostIncurred(
        stage="s1",
        kind="model",
        seconds=3.5,
        model="m",
        input_tokens=1200,
        output_tokens=340,
        estimated=True,
        task="t1",
    ),
    ("stage.outcome_reported", 1): OutcomeReported(
        stage="s1", correct=True, first_ms=1.0, best_ms=0.6, source="log of a team"
    ),
    ("stage.scored", 1): StageScored(
        stage="s1",
        kind="optimization",
        operator="gelu",
        score=0.4,
        offered=("e1", "e2"),
        adopted=("e1",),
        first="c1",
        best="c2",
        first_ms=1.0,
        best_ms=0.6,
    ),
    ("stage.abandoned", 1): StageAbandoned(stage="s1", reason="cancelled"),
    ("stage.invalidated", 1): StageInvalidated(
        stages=("s1", "s2"), subject=f"candidate:{A}", reason="it read the reference's output", by="judge"
    ),
    ("stage.reinstated", 1): StageReinstated(stages=("s2",), subject="stage:s2", reason="a false alarm"),
    ("memory.restated", 1): MemoryRestated(
        scored={"correctness": 4, "optimization": 3},
        experiences=(
            Restated(
                experience="e1",
                value=-0.1,
                n=2,
                adoptions=1,
                operators=("gelu",),
                scored_before=1,
                average=None,
                frozen=0.25,
                environments=(("910B", "8.5.0"),),
            ),
        ),
    ),
    ("value.updated", 1): ValueUpdated(
        stage="s1",
        experience="e1",
        n=3,
        alpha=0.25,
        feedback=0.1 + 0.2,
        old=5e-324,
        new=1.7976931348623157e308,
        adopted=True,
    ),
    ("frequency.updated", 1): FrequencyUpdated(
        stage="s1", changes=(FrequencyChange(experience="e1", old=1 / 3, new=0.25, used=True, averaged=False),)
    ),
    ("rule.distilled", 1): RuleDistilled(experience="e1", text=A, tokens=120, tokenizer="declared", model="m"),
    ("memory.consolidated", 1): Consolidated(
        trigger="stage",
        subject="s1",
        budget=10_000,
        used=120,
        ranked=(Ranked(experience="e1", value=0.5, frequency=0.25, tokens=120, priority=0.125 / 120, resident=True),),
    ),
    ("rule.admitted", 1): RuleAdmitted(experience="e1", subject="s1", rank=1, priority=0.125 / 120, tokens=120),
    ("rule.evicted", 1): RuleEvicted(experience="e1", subject="s1", reason="did not fit the budget"),
}


def path_of(name: str, schema: int) -> Path:
    return GOLDEN / f"{name}.v{schema}.json"


@pytest.mark.parametrize(("name", "schema"), sorted(EXPECTED))
def test_a_golden_record_is_read_as_it_always_was(name: str, schema: int):
    """Whatever today's schema number is, the event is the one that was meant."""
    record = path_of(name, schema).read_bytes().rstrip(b"\n")
    back = codec.decode(record)
    assert back.event == EXPECTED[name, schema]
    assert (back.library, back.sequence, back.type, back.schema) == ("golden", 7, name, schema)
    assert (back.id, back.time, back.actor, back.task, back.stage) == (
        "id-7",
        "2026-01-02T03:04:05Z",
        "ann",
        "t1",
        "s1",
    )


def test_every_event_type_and_schema_number_has_a_golden_record():
    """Of every name in the table, from its first schema number to today's; and no record is left unread."""
    known = {(name, schema) for name, (_, today) in NAMES.items() for schema in range(1, today + 1)}
    assert known - set(EXPECTED) == set(), "add these to EXPECTED and run this file"
    assert {path.name for path in GOLDEN.glob("*.json")} == {path_of(*key).name for key in EXPECTED}


def write_missing() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for (name, schema), event in EXPECTED.items():
        if path_of(name, schema).exists():
            continue
        written, today, payload = codec.encode(event)
        assert (written, today) == (name, schema)
        draft = Draft(name, schema, "id-7", "2026-01-02T03:04:05Z", "ann", "t1", "s1", payload)
        path_of(name, schema).write_bytes(codec.assemble("golden", 7, draft) + b"\n")


if __name__ == "__main__":
    write_missing()
