"""A ledger in memory behind the real application, reached by the typed client and by bare HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from fastapi import FastAPI

from ledger import wire
from ledger.bootstrap import memory_ledger
from ledger.client import LedgerClient
from ledger.inprocess import InProcessTransport
from ledger.service import Ledger
from ledger.web.app import routes
from tests.ledger.judge import Judge

EASY = {"min_adoptions": 1, "min_operators": 1}


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    made = memory_ledger()
    yield made
    made.close()


@pytest.fixture(scope="session")
def application() -> FastAPI:
    """The routes, built once: they hold nothing of a library."""
    return routes()


@pytest.fixture
def http(application: FastAPI, ledger: Ledger) -> Iterator[httpx.Client]:
    """Bare requests into the application."""
    application.state.ledger = ledger
    transport = InProcessTransport(application, on_close=lambda: None)
    with httpx.Client(transport=transport, base_url="http://ledger") as client:
        yield client


@pytest.fixture
def client(http: httpx.Client) -> LedgerClient:
    """The typed client, with the library `lib` under `sage` with an easy gate."""
    made = LedgerClient(http, actor="tester")
    made.create_library("lib", policy=EASY)
    return made


@pytest.fixture
def judge() -> Judge:
    return Judge()


def record(client: LedgerClient, *names: str, text: str = "DataCopyPad needs set_flag before the tail block") -> None:
    for name in names:
        client.record_experience("lib", wire.NewExperience(experience=name, title=f"Pattern {name}", body=text))


def start(client: LedgerClient, task: str, operator: str = "gelu", budget: int = 30) -> None:
    client.start_task("lib", wire.NewTask(task=task, operator=operator, model="m", budget=budget))


def opened(
    client: LedgerClient, task: str, stage: str, kind: wire.StageKind = "correctness", basis: str = "judged"
) -> wire.OpenedStage:
    return client.open_stage("lib", task, wire.NewStage(stage=stage, kind=kind, basis=basis))


def propose(client: LedgerClient, stage: str, candidate: str, source: str) -> wire.Candidate:
    return client.propose_candidate(
        "lib",
        stage,
        wire.NewCandidate(candidate=candidate, source=source, language="cpp", change="c", hypothesis="h"),
    )


def decided(client: LedgerClient, stage: str, **adopted: bool) -> wire.Stage:
    return client.decide(
        "lib", stage, [wire.Decision(experience=n, adopted=a, reason="because") for n, a in adopted.items()]
    )


def told(client: LedgerClient, stage: str, operator: str = "gelu", **adopted: bool) -> wire.Score:
    """A whole reported correctness stage that passes; what is adopted or not is retrieved first, if it is cold."""
    start(client, f"task-{stage}", operator)
    opened(client, f"task-{stage}", stage, basis="reported")
    client.retrieve("lib", stage, "DataCopyPad tail")
    rest = dict.fromkeys(client.stage("lib", stage).undecided, False)
    decided(client, stage, **(rest | adopted)) if rest | adopted else None
    client.report_outcome("lib", stage, wire.ReportedOutcome(correct=True))
    return client.score_stage("lib", stage)
