"""The `sanitize` tool: the candidate under AddressSanitizer and UndefinedBehaviorSanitizer, then under ThreadSanitizer.

The sanitizer's library has to be in a process from its start, so each has a jail of its own, the same one compiled with
it: root, namespaces, user and filter of system calls are those of every kernel. Only the limit on the address space
goes, since a sanitizer maps terabytes of it; the judge watches the memory that is really used instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from device import sandbox
from device.diagnose import region, runs, sanitizer_text
from device.diagnose.types import Finding, Report, Sanitize, Sanitized
from device.languages import cpp
from device.oracle import LARGE, Suite
from device.sandbox import Instruments
from device.types import Build, Ended, Limits
from device.worker import Worker

_DEBUG = ("-O1", "-g", "-fno-omit-frame-pointer")
_UNDEFINED = "-fno-sanitize=vptr,float-divide-by-zero"
"""Dividing a float by zero is defined by IEEE 754, and the judge looks at what comes of it."""

_OPENMP = (
    "GOMP_parallel", "GOMP_parallel_sections", "GOMP_parallel_loop_static", "GOMP_parallel_loop_dynamic",
    "GOMP_parallel_loop_guided", "GOMP_parallel_loop_nonmonotonic_dynamic", "GOMP_parallel_loop_nonmonotonic_guided",
    "GOMP_parallel_loop_runtime", "GOMP_parallel_loop_nonmonotonic_runtime",
    "GOMP_parallel_loop_maybe_nonmonotonic_runtime", "GOMP_barrier", "GOMP_loop_end", "GOMP_sections_end",
    "GOMP_critical_start", "GOMP_critical_end", "GOMP_critical_name_start", "GOMP_critical_name_end",
    "GOMP_atomic_start", "GOMP_atomic_end", "GOMP_ordered_start", "GOMP_ordered_end", "GOMP_single_copy_start",
    "GOMP_single_copy_end", "omp_set_lock", "omp_unset_lock", "omp_test_lock", "omp_set_nest_lock",
    "omp_unset_nest_lock", "omp_test_nest_lock",
)  # fmt: skip
"""What device/diagnose/native/openmp.cpp stands before."""

UNLIMITED = 1 << 60
"""Address space of a sanitizer's process, in bytes: more than a processor has, so that its shadow finds room."""

MEMORY_FACTOR = 4
"""A sanitizer's process may really use so many times what the candidate may."""

WATCH_SECONDS = 0.02
MOST_REPORTS, ENOUGH_REPORTS = 20, 3
"""Reports that are kept, and races after which no further problem is run: each repetition of one costs time."""

_RACE = "WARNING: ThreadSanitizer: "


@dataclass(frozen=True, slots=True)
class Kit:
    """One instrumented build and how its process is set up."""

    name: str
    sanitizers: tuple[str, ...]
    variant: cpp.Variant
    flags: tuple[str, ...]
    """For the jail."""
    environment: tuple[tuple[str, str], ...]
    threads: int | None = None
    """So many threads; None means as many as the judge allows."""


_ASAN = (
    "symbolize=0:detect_leaks=0:allow_user_segv_handler=0:allocator_may_return_null=1:use_sigaltstack=0:print_legend=0:"
    "detect_stack_use_after_return=1:abort_on_error=0:exitcode=99"
)
_TSAN = "symbolize=0:report_signal_unsafe=0:report_thread_leaks=0:history_size=4"
_WRAPPED = f"-Wl,--wrap={',--wrap='.join(_OPENMP)}"
_BOTH = ("-fsanitize=address,undefined", _UNDEFINED)

KITS = (
    Kit(
        "address",
        ("address", "undefined"),
        cpp.Variant("address", (*runs.DIAGNOSE, *_DEBUG, *_BOTH), (runs.WRAP,)),
        (*_BOTH, "-Wl,--no-as-needed"),
        (("ASAN_OPTIONS", _ASAN), ("UBSAN_OPTIONS", "print_stacktrace=0:halt_on_error=0")),
    ),
    Kit(
        "thread",
        ("thread",),
        cpp.Variant(
            "thread",
            (*runs.DIAGNOSE, *_DEBUG, "-fsanitize=thread", _WRAPPED),
            (runs.WRAP, runs.NATIVE / "openmp.cpp"),
        ),
        ("-fsanitize=thread",),
        (("TSAN_OPTIONS", _TSAN),),
        threads=4,
    ),
)


def sanitize(
    source: str, suite: Suite, limits: Limits, threads: int, masks: Sequence[Path] = (), kits: Sequence[Kit] = KITS
) -> tuple[Sanitize, tuple[Finding, ...]]:
    """Run a candidate under each sanitizer over the problems of a suite: of the large ones those as given."""
    done = tuple(_run(kit, source, suite, limits, threads, masks) for kit in kits)
    findings = [_finding(report) for run in done for report in run.reports]
    return Sanitize(done), tuple(findings)


def _run(kit: Kit, source: str, suite: Suite, limits: Limits, threads: int, masks: Sequence[Path]) -> Sanitized:
    count = kit.threads or threads
    build = runs.make(source, kit.variant, limits, masks)
    made = runs.note(build)
    if not build.ok:
        return Sanitized(kit.sanitizers, made, "not built", f"the sanitizer build failed: {build.summary}")
    wide = replace(limits, memory=UNLIMITED, stack=max(limits.stack, 16 << 20), processes=limits.processes + 8)
    given = [p for p in suite.problems if p.name.endswith("/given")]
    large = [p for p in given if p.elements > LARGE]  # some kernels start threads in these alone
    rest = [p for p in suite.problems if p.elements <= LARGE and not p.name.endswith("/given")]
    order = (*(p for p in given if p.elements <= LARGE), *large, *rest)
    placed = [runs.place(p, region.LEAST_BYTES) for p in order]
    instruments = Instruments(sandbox.instrumented_jail(kit.name, kit.flags), kit.environment, _launcher(kit.name))
    until = time.monotonic() + limits.total_seconds
    ran, problem, message, outcome = 0, "", "", "finished"
    heard: list[tuple[str, str]] = []
    end: Ended | None = None
    with (
        runs.opened(build, placed, wide, count, instruments) as (bench, worker, ended),
        _watched(worker, limits.memory * MEMORY_FACTOR),
    ):
        end = ended
        for one in placed if end is None else ():
            if time.monotonic() > until:
                message = f"the time for it is used up; {len(placed) - ran} problems were left out"
                break
            ran, problem = ran + 1, one.problem.name
            before = len(worker.said())
            called = runs.call(bench, one)
            heard.append((problem, worker.said()[before:]))
            if isinstance(called, Ended):
                end = called
                break
            if sum(text.count(_RACE) for _, text in heard) >= ENOUGH_REPORTS:
                message = f"enough was reported; {len(placed) - ran} problems were left out"
                break
        if end is not None:
            outcome, message = end.how, end.message
            heard.append((problem, worker.said() if not heard else ""))
    reports = _read(heard, build, limits)
    if end is not None and reports and reports[-1].sanitizer == "address":
        outcome, message = "stopped", f"AddressSanitizer ended the run at its first report, in {problem}"
    elif end is not None and end.how == "hang" and reports:
        outcome, message = "stopped", f"what was reported came so often in {problem} that the call did not end in time"
    return Sanitized(kit.sanitizers, made, outcome, message, ran, count, reports)


def _launcher(name: str) -> tuple[str, ...]:
    """ThreadSanitizer of older compilers cannot live with more than 28 random bits in addresses: have none then."""
    if name != "thread":
        return ()
    with contextlib.suppress(OSError, ValueError):
        bits = int(Path("/proc/sys/vm/mmap_rnd_bits").read_text(encoding="ascii"))
        found = shutil.which("setarch")
        if bits > 28 and found:
            return (found, "-R")
    return ()


@contextlib.contextmanager
def _watched(worker: Worker, most: int) -> Iterator[None]:
    """End a process that really uses more memory than it may: its address space cannot be limited."""
    done = threading.Event()
    page = os.sysconf("SC_PAGE_SIZE")

    def watch() -> None:
        while not done.wait(WATCH_SECONDS):
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = Path(f"/proc/{worker.pid}/statm").read_text(encoding="ascii").split()
                if (int(words[1]) - int(words[2])) * page > most:
                    os.kill(worker.pid, signal.SIGKILL)
                    return

    thread = threading.Thread(target=watch, name="memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _read(heard: Sequence[tuple[str, str]], build: Build, limits: Limits) -> tuple[Report, ...]:
    """Read all reports, each once, with the addresses of the candidate turned into its lines."""
    raw = [(problem, text) for problem, text in heard if text]
    addresses = sorted({at for _, text in raw for at in sanitizer_text.addresses(text)})
    places = _places(build, addresses, limits) if addresses else {}
    found: dict[tuple[object, ...], Report] = {}
    for problem, text in raw:
        for report in sanitizer_text.read(text, places):
            named = replace(report, problem=problem)
            found.setdefault((report.sanitizer, report.kind, report.line, report.column), named)
    return tuple(found.values())[:MOST_REPORTS]


def _places(build: Build, addresses: Sequence[str], limits: Limits) -> dict[str, tuple[sanitizer_text.Place, ...]]:
    """Ask addr2line where in the candidate's text addresses lie; it runs confined, as the compiler does."""
    tool = shutil.which("addr2line")
    if tool is None or build.artefact is None:
        return {}
    folder = Path(tempfile.mkdtemp(prefix="sagebook-places-"))
    try:
        shutil.copyfile(build.artefact, folder / "kernel.so")
        command = [tool, "-e", "kernel.so", "-a", "-f", "-C", "-i", *addresses]
        done = sandbox.run_command(command, folder, limits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return sanitizer_text.places(done.output) if done.code == 0 else {}


def _finding(report: Report) -> Finding:
    place = f"{report.file}:{report.line}" if report.file and report.line else ""
    inside = f" in {report.function}" if report.function else ""
    message = f"{report.message}{f' at {place}' if place else ''}{inside} ({report.problem})"
    numbers = {"bytes": float(report.size)} if report.size else {}
    return Finding("sanitize", report.kind, message, place, sanitizer_text.advice(report.kind), numbers)
