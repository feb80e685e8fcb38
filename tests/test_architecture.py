"""The arrows between the three houses and inside them. Arrows over chains of imports are contracts in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sources import ROOT, imports, is_within, modules, relative, tree

AGENT_MAY_IMPORT = {
    "ledger": {"ledger.client", "ledger.wire", "ledger.errors"},
    # languages: the text of the entry point's header is what an author is given.
    "device": {"device", "device.operators", "device.languages", "device.errors", "device.types", "device.report"},
}

# I/O, clocks, identifiers, randomness and threads come to the domain as arguments or not at all.
IMPURE = {
    *("asyncio", "io", "logging", "multiprocessing", "os", "pathlib", "platform", "random", "secrets", "shutil"),
    *("socket", "subprocess", "sys", "tempfile", "threading", "time", "uuid"),
    *("alembic", "fastapi", "httpx", "rich", "sqlalchemy", "starlette", "structlog", "typer"),
}
IMPURE_CALLS = {"open", "print", "input", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}

ADAPTERS = tuple(f"ledger.store.{name}" for name in ("memory", "sql", "engine", "schema", "statements"))
MAY_NAME_ADAPTERS = ("ledger.bootstrap", "ledger.store")
# The entry points of the ledger's processes.
MAY_IMPORT_BOOTSTRAP = ("ledger.bootstrap", "ledger.cli", "ledger.command")


def _violations(house: str, is_wrong: Callable[[str, str], bool]) -> list[str]:
    """Imports in a house for which `is_wrong(importer, imported)` holds, as lines for the report."""
    return [
        f"{relative(path)}:{line} imports {imported}"
        for name, path in modules().items()
        if is_within(name, house)
        for imported, line in imports(path)
        if is_wrong(name, imported)
    ]


def test_import_contracts_are_kept() -> None:
    """import-linter follows chains of imports, which the checks below do not."""
    command = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run(
        [command, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize("house", ["ledger", "device"])
def test_agent_uses_only_the_public_face_of(house: str) -> None:
    """The agent speaks to the ledger through its client, and to the device through what `device` offers."""
    allowed = AGENT_MAY_IMPORT[house]
    assert _violations("agent", lambda _, imported: is_within(imported, house) and imported not in allowed) == []


def test_domain_imports_nothing_impure() -> None:
    """The domain computes: the same facts give the same state on any machine, at any time."""

    def is_wrong(_: str, imported: str) -> bool:
        return imported.partition(".")[0] in IMPURE or imported == "numpy.random"

    assert _violations("ledger.domain", is_wrong) == []


def test_domain_knows_only_itself_and_the_errors() -> None:
    """Store, web and service may know the domain; it knows none of them."""

    def is_wrong(_: str, imported: str) -> bool:
        inside = is_within(imported, "ledger.domain") or imported in {"ledger", "ledger.errors"}
        return is_within(imported, "ledger") and not inside

    assert _violations("ledger.domain", is_wrong) == []


def test_domain_calls_no_clock_and_no_file() -> None:
    """`datetime` may parse a recorded time; asking for the present one is the caller's."""
    found = [
        f"{relative(path)}:{node.lineno} calls {'.'.join(ast.unparse(node.func).split('.')[-2:])}"
        for name, path in modules().items()
        if is_within(name, "ledger.domain")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and ".".join(ast.unparse(node.func).split(".")[-2:]) in IMPURE_CALLS
    ]
    assert found == []


def test_only_bootstrap_names_the_adapters() -> None:
    """Which log serves is decided in one place; everything else takes the port."""

    def is_wrong(name: str, imported: str) -> bool:
        return is_within(imported, *ADAPTERS) and not is_within(name, *MAY_NAME_ADAPTERS)

    assert _violations("ledger", is_wrong) == []


def test_only_entry_points_import_bootstrap() -> None:
    """A module that built its own application would be a second place that decides."""

    def is_wrong(name: str, imported: str) -> bool:
        return is_within(imported, "ledger.bootstrap") and not is_within(name, *MAY_IMPORT_BOOTSTRAP)

    assert [found for house in ("ledger", "agent", "device") for found in _violations(house, is_wrong)] == []


def test_web_and_store_meet_only_in_the_service() -> None:
    """Routes speak to the service, and the store speaks to nobody above it; SQL stays in the store."""

    def is_wrong(name: str, imported: str) -> bool:
        if is_within(name, "ledger.web"):
            return is_within(imported, "ledger.store", "sqlalchemy", "alembic", "sqlite3")
        if is_within(imported, "sqlalchemy", "alembic", "sqlite3"):
            return not is_within(name, "ledger.store", "ledger.bootstrap")
        return False

    assert _violations("ledger", is_wrong) == []


def test_torch_npu_is_imported_only_where_it_is_asked_for() -> None:
    """torch_npu imports only beside CANN, so a module that names it at its top could not be imported here."""
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in modules().values()
        for node in tree(path).body
        if isinstance(node, ast.Import | ast.ImportFrom) and "torch_npu" in ast.unparse(node)
    ]
    assert found == []


def test_tests_are_read_by_these_checks() -> None:
    """An empty list of modules would pass every check above."""
    assert {"ledger", "agent", "device", "ledger.domain", "ledger.store", "ledger.web"} <= set(modules())
