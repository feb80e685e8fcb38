"""The wheel has all that the code reads, and the base install, without any extra, is a working ledger."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.sources import HOUSES, ROOT, imports, python_files, relative, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = {"torch", "openai", "quicktok_v1", "pytest", "ruff", "mypy", "hypothesis", "psycopg"}


def _closure(requirements: Iterable[str], extra: str = "") -> set[str]:
    """Names of the distributions that these requirements bring on this machine."""
    found: set[str] = set()
    todo = [(requirement, extra) for requirement in requirements]
    seen = set()
    while todo:
        text, wanted = todo.pop()
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": wanted}):
            continue
        name = canonicalize_name(requirement.name)
        found.add(name)
        for each in ("", *requirement.extras):
            if (name, each) not in seen:
                seen.add((name, each))
                todo += [(line, each) for line in importlib.metadata.requires(name) or []]
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that the build leaves nothing in the working folder."""
    folder = tmp_path_factory.mktemp("wheel")
    for path in tracked():
        target = folder / "source" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", folder, folder / "source"], check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("sagebook-*.whl")
    return built


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's contents and, linked, exactly what the base requirements bring: no extra is in reach."""
    folder = tmp_path_factory.mktemp("base")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name in _closure(PROJECT["dependencies"]):
        distribution = importlib.metadata.distribution(name)
        for part in {file.parts[0] for file in distribution.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            link = folder / part
            if not link.exists():
                link.symlink_to(Path(str(distribution.locate_file(part))).resolve())
    return folder


def _in_base(base: Path, tmp_path: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # -I and -S: neither this environment's packages nor the working folder are on the path.
    start = f"import sys; sys.path.insert(0, {str(base)!r}); sys.argv[0] = 'sagebook'\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code, *arguments], cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120, env={**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "160"},
    )  # fmt: skip


COMMAND = "from ledger.command import main; sys.exit(main())"


def test_what_the_code_reads_is_in_the_wheel(wheel: Path) -> None:
    """Headers, kernels, documents and migrations travel with the code, not only in a checkout."""
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    expected = {relative(p) for p in tracked() if p.relative_to(ROOT).parts[0] in {*HOUSES, "migrations"}}
    assert expected - packed == set()


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    """Tests and benchmarks would land in the user's site-packages under names as common as `tests`."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/", maxsplit=1)[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {*HOUSES, "migrations"}


def test_the_base_has_no_extra(base: Path) -> None:
    """The check below would prove nothing if torch were in reach."""
    assert [name for name in OPTIONAL if (base / name).exists()] == []
    assert (base / "sqlalchemy").exists()


def test_every_ledger_module_imports_in_the_base(base: Path, tmp_path: Path) -> None:
    """A server installs without torch, a compiler or a model's client."""
    code = (
        "import importlib, pkgutil, ledger\n"
        "for found in pkgutil.walk_packages(ledger.__path__, 'ledger.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name); print(found.name)\n"
    )
    done = _in_base(base, tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert "ledger.client" in done.stdout.split()


def test_the_command_answers_in_the_base(base: Path, tmp_path: Path) -> None:
    """`sagebook --help` lists the ledger's commands, and a fresh library can be created and listed."""
    done = _in_base(base, tmp_path, COMMAND, "--help")
    assert done.returncode == 0, done.stderr
    assert "rederive" in done.stdout
    done = _in_base(base, tmp_path, COMMAND, "library", "create", "first")
    assert done.returncode == 0, done.stderr
    done = _in_base(base, tmp_path, COMMAND, "library", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert "first" in json.dumps(json.loads(done.stdout))


def test_the_device_says_which_extra_it_needs(base: Path, tmp_path: Path) -> None:
    """The doctor works everywhere: where torch is missing it says so and how to get it, without a traceback."""
    done = _in_base(base, tmp_path, COMMAND, "device", "doctor")
    assert "Traceback" not in done.stderr
    assert "torch" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("house", "extras"),
    [("ledger", ["dense", "postgres", "sqlite"]), ("device", ["device", "npu"]), ("agent", ["agent"])],
)
def test_what_a_house_imports_is_declared(house: str, extras: list[str]) -> None:
    """A package that only another package brings may be gone with that package's next release."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in PROJECT["optional-dependencies"][extra])]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    distributions = importlib.metadata.packages_distributions()
    undeclared = {}
    for path in python_files(house, *(["migrations"] if house == "ledger" else [])):
        for imported, line in imports(path):
            top = imported.partition(".")[0]
            if top in sys.stdlib_module_names or top in {*HOUSES, "migrations"}:
                continue
            names = {canonicalize_name(name) for name in distributions.get(top, [top])}
            if not names & declared:
                undeclared[f"{relative(path)}:{line}"] = top
    assert undeclared == {}


def test_constraints_pin_all_that_the_extras_bring() -> None:
    """A distribution without a pin would differ from one machine to the next."""
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line[:1] not in {"#", ""}
    ]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line)] == []
    assert lines == sorted(set(lines), key=str.lower), "one line a distribution, sorted"
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    needed = _closure(PROJECT["dependencies"])
    for extra in ("agent", "device", "dev"):
        needed |= _closure(PROJECT["optional-dependencies"][extra])
    # A CUDA build of torch brings its own exact pins of these.
    needed = {name for name in needed if not name.startswith(("nvidia-", "cuda-")) and name != "triton"}
    assert needed - pinned == set()
    assert {name for name in pinned if name == "torch-npu"} == set()
