"""The `cpp` language: C++17 compiled by g++ to a shared object, once for each text, flags, compiler and processor."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from device import cheats, sandbox
from device.errors import SandboxBroken
from device.machine import cpu_features
from device.types import Build, Check, Limits

HEADER = Path(__file__).with_name("sagebook_kernel.h")
BASE_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-Wl,-z,defs")
FORMAT = "1"
"""Part of every cache key: raise it when what the build step does changes."""

ALLOWED_FLAGS = re.compile(
    r"""
    -O[123] | -Ofast | -ffast-math | -funroll-loops | -funroll-all-loops | -fpeel-loops | -ffinite-math-only
  | -f(?:no-)?(?:math-errno|trapping-math|signed-zeros|signaling-nans|rounding-math|strict-aliasing|exceptions|rtti
        |associative-math|reciprocal-math|unsafe-math-optimizations|tree-vectorize|tree-slp-vectorize
        |tree-loop-vectorize|omit-frame-pointer|prefetch-loop-arrays|split-loops|ipa-pta|semantic-interposition)
  | -ffp-contract=(?:fast|on|off) | -fvect-cost-model=(?:unlimited|dynamic|cheap|very-cheap) | -fopenmp-simd
  | -fsimd-cost-model=(?:unlimited|dynamic|cheap) | -mprefer-vector-width=(?:none|128|256|512)
  | -std=(?:c|gnu)\+\+(?:17|20) | -Wall | -Wextra
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to build a candidate, to learn something of it; what it makes is never verified and never timed."""

    name: str
    flags: tuple[str, ...]
    """Come last, so that they win over the candidate's own."""
    sources: tuple[Path, ...]
    """The judge's own files that are compiled in with it."""
    base: tuple[str, ...] = BASE_FLAGS


_FLAG_LINE = re.compile(r"^\s*//\s*flags:\s*(.*?)\s*$")
_FLAG_LINES = 10
_OUT_OF_MEMORY = re.compile(
    r"out of memory|virtual memory exhausted|cannot allocate memory|Killed signal", re.IGNORECASE
)


def requested_flags(source: str) -> tuple[str, ...]:
    """Return the flags that the first `// flags:` comment within the first ten lines asks for."""
    for line in source.splitlines()[:_FLAG_LINES]:
        if match := _FLAG_LINE.match(line):
            return tuple(match.group(1).split())
    return ()


def build(source: str, limits: Limits, masks: Sequence[Path] = (), variant: Variant | None = None) -> Build:
    """Check and compile a candidate; the folders in `masks` are hidden from the compiler.

    A `variant` has flags, files and a place in the cache of its own.

    Raises CompilerMissing and SandboxBroken; what is wrong with the candidate is in the result.
    """
    begin = time.monotonic()
    gxx = sandbox.compiler()
    flags = requested_flags(source)
    strange = [flag for flag in flags if not ALLOWED_FLAGS.fullmatch(flag)]
    allowed = Check("flags", not strange, f"{strange[0]} is not an allowed compiler flag" if strange else "")
    checks = (allowed, *cheats.check_source(source))
    base, more, own = (variant.base, variant.flags, variant.sources) if variant else (BASE_FLAGS, (), ())
    own_names = tuple(path.name for path in own)
    command = (Path(gxx).name, *base, *flags, *more, "-I.", "-o", "kernel.so", "kernel.cpp", *own_names)
    if refusal := cheats.first_refusal(checks):
        reason = f"{refusal.name}: {refusal.detail}"
        return Build("refused", command, time.monotonic() - begin, "", summary=reason, checks=checks)
    folder = sandbox.cache_folder() / "kernels" / _key(gxx, source, flags, variant)
    if (kept := _recall(folder, command, checks, begin)) is not None:
        return kept
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="sagebook-build-"))
    try:
        for path in own:
            shutil.copyfile(path, place / path.name)
        made = _compile(gxx, source, command, place, limits, masks)
        if made is None:
            return Build(
                "resource", command, time.monotonic() - begin, "", checks=checks,
                summary=f"the compiler did not finish within {limits.compile_seconds:g} s",
            )  # fmt: skip
        outcome, log = made
        _keep(folder, place / "kernel.so", outcome, log)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    result = _recall(folder, command, checks, begin)
    if result is None:
        raise SandboxBroken("keeping a compiled kernel", f"{folder} could not be read back")
    return Build(
        result.outcome, command, time.monotonic() - begin, result.log, False, result.artefact,
        result.artefact_sha256, result.summary, result.checks,
    )  # fmt: skip


def _compile(
    gxx: str, source: str, command: Sequence[str], place: Path, limits: Limits, masks: Sequence[Path]
) -> tuple[str, str] | None:
    """Run the compiler in `place`; return the outcome and its text, None when it ran out of time."""
    place.joinpath("kernel.cpp").write_bytes(source.encode("utf-8", "surrogatepass"))
    shutil.copyfile(HEADER, place / HEADER.name)
    done = sandbox.run_command([gxx, *command[1:]], place, limits, masks)
    if done.timed_out:
        return None
    if done.code == 0 and place.joinpath("kernel.so").exists():
        return "built", done.output
    return ("resource" if done.code < 0 or _OUT_OF_MEMORY.search(done.output) else "compile_error"), done.output


def _keep(folder: Path, library: Path, outcome: str, log: str) -> None:
    """Store a result under its key; whoever is second finds the first one's and leaves it."""
    partial = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    partial.mkdir()
    facts: dict[str, str | None] = {"outcome": outcome, "log": log, "sha256": None}
    if outcome == "built":
        shutil.move(library, partial / "kernel.so")
        partial.joinpath("kernel.so").chmod(0o644)
        facts["sha256"] = hashlib.sha256(partial.joinpath("kernel.so").read_bytes()).hexdigest()
    partial.joinpath("build.json").write_text(json.dumps(facts), encoding="utf-8")
    try:
        partial.rename(folder)
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)


def _recall(folder: Path, command: tuple[str, ...], checks: tuple[Check, ...], begin: float) -> Build | None:
    """Return the kept result, or None when there is none or it is not what was kept (it is then removed)."""
    try:
        facts = json.loads(folder.joinpath("build.json").read_text(encoding="utf-8"))
        library = folder / "kernel.so" if facts["outcome"] == "built" else None
        digest = None if library is None else hashlib.sha256(library.read_bytes()).hexdigest()
        whole = bool(digest == facts["sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError):
        whole = False
    if not whole:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    outcome, log, summary = facts["outcome"], facts["log"], ""
    if library is not None:
        found = cheats.check_artefact(library)
        checks += found
        if refusal := cheats.first_refusal(found):
            outcome = "compile_error" if refusal.name == "entry point" else "refused"
            summary, log, library = refusal.detail, log or refusal.detail, None
    else:
        summary = _first_error(log)
    return Build(outcome, command, time.monotonic() - begin, log, True, library, digest, summary, checks)


def _first_error(log: str) -> str:
    """Return the first line of a compiler's text that says what is wrong."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    wrong = [line for line in lines if "error:" in line or "undefined reference" in line]
    return (wrong or lines or ["the compiler failed without a word"])[0]


def _key(gxx: str, source: str, flags: Sequence[str], variant: Variant | None) -> str:
    parts = [FORMAT, source, *BASE_FLAGS, *flags, compiler_version(gxx), *cpu_features(), HEADER.read_text("utf-8")]
    if variant is not None:
        texts = [path.read_text("utf-8") for path in variant.sources]
        parts += [f"variant {variant.name}", *variant.base, *variant.flags, *texts]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def compiler_version(gxx: str) -> str:
    """Return the first line of `g++ --version`, asked once for each file that the compiler was."""
    return _version(gxx, os.stat(gxx).st_mtime_ns)  # noqa: PTH116


@functools.lru_cache(maxsize=8)
def _version(gxx: str, _changed: int) -> str:
    said = sandbox.ask([gxx, "--version"])
    return said.splitlines()[0].strip() if said else "unknown"
