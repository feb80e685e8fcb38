"""Routes of stages: what an agent does, in order."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ledger import wire
from ledger.commands import retrieval, stages
from ledger.web.calls import TheCall, TheLedger, reply

router = APIRouter(prefix="/v1/libraries/{library}/stages/{stage}", tags=["stages"])


@router.get("")
def show_stage(library: str, stage: str, ledger: TheLedger) -> wire.Stage:
    """One stage as it stands."""
    return stages.show(ledger, library, stage)


@router.post("/retrievals", response_model=wire.Retrieved, status_code=201)
def retrieve(library: str, stage: str, asked: wire.Retrieval, ledger: TheLedger, call: TheCall) -> Response:
    """Offer experiences for a query: a pool by relevance, re-ranked by value."""
    return reply(retrieval.retrieve(ledger, call, library, stage, asked), 201)


@router.post("/decisions", response_model=wire.Stage)
def decide(library: str, stage: str, given: wire.Decisions, ledger: TheLedger, call: TheCall) -> Response:
    """Say of offers whether they were adopted, and why; all are recorded or none."""
    return reply(stages.decide_on(ledger, call, library, stage, given))


@router.post("/candidates", response_model=wire.Candidate, status_code=201)
def propose_candidate(library: str, stage: str, new: wire.NewCandidate, ledger: TheLedger, call: TheCall) -> Response:
    """Record a kernel before it is judged; it takes one round of the budget."""
    return reply(stages.propose(ledger, call, library, stage, new), 201)


@router.post("/candidates/{candidate}/report", response_model=wire.Candidate)
def hand_in_report(
    library: str, stage: str, candidate: str, report: wire.Report, ledger: TheLedger, call: TheCall
) -> Response:
    """Hand in the judge's signed report; the facts of a score are read from it."""
    return reply(stages.hand_in(ledger, call, library, stage, candidate, report))


@router.post("/diagnoses", response_model=wire.Appended, status_code=201)
def diagnose(library: str, stage: str, given: wire.Diagnosis, ledger: TheLedger, call: TheCall) -> Response:
    """Record what a tool's evidence said and what follows from it."""
    return reply(stages.diagnose(ledger, call, library, stage, given), 201)


@router.post("/costs", response_model=wire.Appended, status_code=201)
def incur_cost(library: str, stage: str, given: wire.Cost, ledger: TheLedger, call: TheCall) -> Response:
    """Record what a step cost."""
    return reply(stages.cost(ledger, call, library, stage, given), 201)


@router.post("/outcome", response_model=wire.Appended, status_code=201)
def report_outcome(library: str, stage: str, told: wire.ReportedOutcome, ledger: TheLedger, call: TheCall) -> Response:
    """Record a verdict by hand, for a stage opened with basis `reported`."""
    return reply(stages.report_outcome(ledger, call, library, stage, told), 201)


@router.post("/score", response_model=wire.Score)
def score_stage(library: str, stage: str, ledger: TheLedger, call: TheCall) -> Response:
    """Close the stage: score, values, frequencies, resident set."""
    return reply(stages.score(ledger, call, library, stage))


@router.post("/abandonment", response_model=wire.Stage)
def abandon_stage(library: str, stage: str, end: wire.Abandonment, ledger: TheLedger, call: TheCall) -> Response:
    """Close the stage without a score."""
    return reply(stages.abandon(ledger, call, library, stage, end.reason))
