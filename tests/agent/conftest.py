"""What the tests of the loop share: a ledger in memory, and a loop around a script and a stand-in for the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent.config import LoopSettings
from agent.distill import Distiller
from agent.journal import Journal
from agent.lessons import Lessons
from agent.loop import Loop
from agent.port import Model, Workbench
from agent.progress import Silent
from agent.retry import Backoff
from agent.tokens import ByteTokens
from ledger.bootstrap import client_of, configure_logging, memory_ledger
from ledger.client import LedgerClient
from ledger.settings import Settings
from tests.agent.stand_in import StandIn

LIBRARY = "test"
MakeLoop = Callable[..., Loop]


@pytest.fixture
def client() -> Iterator[LedgerClient]:
    """A client of a ledger in memory with one library."""
    configure_logging(Settings())
    with client_of(memory_ledger(), actor="tester") as opened:
        opened.create_library(LIBRARY)
        yield opened


def build_loop(client: LedgerClient, model: Model, workbench: Workbench | None = None, **settings: object) -> Loop:
    """A loop with its parts, as `agent.assemble` wires it, that never sleeps."""
    told: dict[str, object] = {"run": "run", **settings}
    given = LoopSettings(library=LIBRARY, model_backoff=Backoff(first=0.0, ceiling=0.0), **told)  # type: ignore[arg-type]
    journal = Journal(client, LIBRARY)
    journal.line.sleep = lambda _: None
    lessons = Lessons(journal, Distiller(journal, ByteTokens(), given, Silent()), None, Silent(), record=given.memory)
    return Loop(model, workbench or StandIn(), journal, given, lessons, sleep=lambda _: None)


@pytest.fixture
def make_loop(client: LedgerClient) -> MakeLoop:
    """Builds a loop on the test's ledger."""
    return lambda model, workbench=None, **settings: build_loop(client, model, workbench, **settings)
