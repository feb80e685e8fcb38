"""The project's own files as the house's tests read them: what is tracked, and what each module imports."""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOUSES = ("ledger", "agent", "device")
# What a working folder holds beside the sources, for a copy that has no git.
_UNTRACKED = {".git", ".venv", ".sagebook", "__pycache__", "build", "dist"}


@functools.cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project, absolute and sorted: what git tracks or would, or all sources where there is no git."""
    try:
        listing = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        files = [ROOT / name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = [path for path in ROOT.rglob("*") if not _UNTRACKED.intersection(path.relative_to(ROOT).parts)]
        files = [path for path in files if not any(part.endswith(("_cache", ".egg-info")) for part in path.parts)]
    return tuple(sorted(path for path in files if path.is_file()))


def relative(path: Path) -> str:
    """The path as it is written in messages and allow-lists."""
    return path.relative_to(ROOT).as_posix()


def python_files(*folders: str) -> tuple[Path, ...]:
    """Tracked Python files under these top-level folders."""
    return tuple(p for p in tracked() if p.suffix == ".py" and p.relative_to(ROOT).parts[0] in folders)


def module_name(path: Path) -> str:
    """`ledger/store/__init__.py` is `ledger.store`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def modules() -> dict[str, Path]:
    """Module names of the three houses, with their files."""
    return {module_name(path): path for path in python_files(*HOUSES)}


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Modules that a file imports anywhere, also inside functions, with the line.

    `from ledger import wire` counts as `ledger.wire` where that is a module, and `from ledger.wire import Rule` as
    `ledger.wire`.
    """
    own = module_name(path).split(".")
    package = own if path.name == "__init__.py" else own[:-1]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                yield (full if full in modules() else origin), node.lineno


def is_within(module: str, *packages: str) -> bool:
    """Whether a module is one of these packages or inside one."""
    return any(module == package or module.startswith(package + ".") for package in packages)
