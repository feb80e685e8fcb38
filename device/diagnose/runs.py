"""What the tools share: a candidate built another way, and its run over the judge's problems, a region beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from device import arena as memory
from device.arena import Arena, Slot
from device.diagnose.types import BuildNote
from device.languages import cpp
from device.operators.base import TensorSpec
from device.oracle import Problem
from device.sandbox import Instruments
from device.types import Build, Ended, Limits
from device.verify import POISONS, Bench, Idleness, staying
from device.worker import Worker

NATIVE = Path(__file__).with_name("native")
WRAP = NATIVE / "wrap.cpp"
DIAGNOSE = ("-DSAGEBOOK_DIAGNOSE", "-Dsagebook_kernel=sagebook_candidate")
"""What makes SB_DUMP a call, and the candidate's entry point one that `wrap.cpp` calls."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A problem and where it lies: its slot has one output more, the region of SB_DUMP."""

    problem: Problem
    slot: Slot


def note(build: Build) -> BuildNote:
    """Say how a candidate was built."""
    log = build.log[:8000] if not build.ok else ""
    return BuildNote(build.ok, build.command, build.artefact_sha256, build.seconds, build.cached, log or build.summary)


def make(source: str, variant: cpp.Variant, limits: Limits, masks: Sequence[Path] = ()) -> Build:
    """Build a candidate in a variant. Raises CompilerMissing and SandboxBroken."""
    return cpp.build(source, limits, masks, variant)


def place(problem: Problem, region_bytes: int) -> Placed:
    """Lay a problem out in the arena, with a region behind its outputs."""
    outputs = (*problem.outputs, TensorSpec((region_bytes,), "uint8"))
    return Placed(problem, memory.lay_out(0, memory.PAGE, problem.case.inputs, outputs))


def without_region(slot: Slot) -> Slot:
    """The slot with the operator's own outputs alone."""
    return Slot(slot.number, slot.inputs, slot.outputs[:-1], slot.begin, slot.end)


@contextlib.contextmanager
def opened(
    build: Build, placed: Sequence[Placed], limits: Limits, threads: int, instruments: Instruments | None = None
) -> Iterator[tuple[Bench, Worker, Ended | None]]:
    """Load a built candidate in a confined process, with an arena that every one of the problems fits into."""
    if build.artefact is None:
        raise ValueError("a candidate that was not built cannot be opened")
    shared = Arena(max(one.slot.end for one in placed) - memory.PAGE)
    try:
        with Worker(build.artefact, shared, limits, threads, instruments=instruments) as worker:
            ended = worker.load()
            yield Bench(shared, worker, Idleness(threads, staying(build, threads))), worker, ended
    finally:
        shared.close()


def call(bench: Bench, placed: Placed) -> int | Ended:
    """Run one problem; return the kernel's code, or how its process ended."""
    problem = placed.problem
    bench.place(placed.slot, problem.inputs, problem.attributes, POISONS[0])
    called = bench.session.call([0])
    return called if isinstance(called, Ended) else called.code
