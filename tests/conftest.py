"""What every test gets: no network beyond loopback, data folders of its own, no ambient settings, fixed seeds."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from tests.postgres import NoPostgresError, Server, running

XDG = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")

# No deadline: two cores are shared. Derandomized: a red run must be red again on the next machine.
hypothesis.settings.register_profile("sagebook", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("sagebook")


class NetworkForbiddenError(RuntimeError):
    """A test reached for the network. Not an OSError: code that survives a lost connection must not survive this."""

    def __init__(self, event: str, host: str) -> None:
        super().__init__(
            f"{event} to {host!r}: tests speak to loopback addresses only; mark a test `live` if it needs a hosted model"
        )


class _Guard:
    closed = True

    def hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not event.startswith("socket.") or not self.closed:
            return
        if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
            address = args[1]
            # A string is a Unix socket, None a socket that is connected already, a number a netlink group.
            host = address[0] if isinstance(address, tuple) and address else None
        elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            host = args[0]
        else:
            return
        host = host.decode() if isinstance(host, bytes) else host
        if isinstance(host, str) and not is_loopback(host):
            raise NetworkForbiddenError(event, host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address stays on this machine. An empty name and the wildcard mean the machine itself."""
    if host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


_guard = _Guard()


def pytest_configure(config: pytest.Config) -> None:
    """Runs before any test module is imported, so that neither imports nor child processes see the user's folders."""
    # SAGEBOOK_TEST_… are settings of the tests themselves.
    for name in [name for name in os.environ if name.startswith("SAGEBOOK_") and not name.startswith("SAGEBOOK_TEST_")]:
        del os.environ[name]
    home = Path(tempfile.mkdtemp(prefix="sagebook-tests-"))
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    for name in XDG:
        folder = home / name.lower()
        folder.mkdir(mode=0o700)
        os.environ[name] = str(folder)
    sys.addaudithook(_guard.hook)


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """A command that ran in this process may have set what is logged; the next test starts without."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Only a test marked `live` may leave the machine."""
    _guard.closed = request.node.get_closest_marker("live") is None
    yield
    _guard.closed = True


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """The global generators start every test alike; those of libraries that no test has loaded are left unloaded."""
    random.seed(0)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A private PostgreSQL; the tests that need one are skipped, with the reason, where none can be had."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(running())
        except NoPostgresError as error:
            pytest.skip(str(error))
        yield server


@pytest.fixture(scope="session")
def postgres_migrated(request: pytest.FixtureRequest) -> str:
    """One migrated database for the tests that leave its schema alone."""
    url = os.environ.get("SAGEBOOK_TEST_POSTGRES_URL") or request.getfixturevalue("postgres_server").url()
    from ledger.store import engine as engines
    from ledger.store import migrate

    engine = engines.make_engine(url)
    migrate.upgrade(engine)
    engine.dispose()
    return url


@pytest.fixture
def postgres_url(postgres_migrated: str) -> str:
    """A migrated PostgreSQL database with nothing in it."""
    from sqlalchemy import text

    from ledger.store import engine as engines
    from ledger.store import schema

    engine = engines.make_engine(postgres_migrated)
    with engine.begin() as connection:
        names = ", ".join(table.name for table in schema.metadata.sorted_tables)
        connection.execute(text(f"TRUNCATE {names}"))
    engine.dispose()
    return postgres_migrated
