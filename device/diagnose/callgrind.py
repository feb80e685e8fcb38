"""Instructions and cache misses of one call, counted by callgrind, and how much of the arithmetic is vectors.

valgrind simulates the processor and does not know AVX-512, so the candidate is built for the newest level that it does
know. It runs the candidate's code, so it is confined: a user of its own, no network, and of all files programs and one
folder.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from device import oracle, sandbox
from device.arena import element_bytes
from device.diagnose import runs
from device.diagnose.types import Line, Source
from device.languages import cpp
from device.machine import cpu_features
from device.operators.base import DTYPES, Case, Operator
from device.types import Build, Limits

LINE_BYTES = 64
TOP_LINES = 5
OUTPUT_BYTES = 8 << 20
MEMORY = 16 << 30
GET = "apt-get install valgrind"

_ARGUMENTS = (
    "--tool=callgrind", "-q", "--cache-sim=yes", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no",
    "--callgrind-out-file=counts.out", "--toggle-collect=sagebook_kernel", "--vgdb=no",
)  # fmt: skip


def level() -> str:
    """Return the `-march` that this machine and valgrind both know."""
    if os.uname().machine == "aarch64":
        return "armv8-a"
    return "x86-64-v3" if {"avx2", "fma", "bmi2"} <= set(cpu_features()) else "x86-64-v2"


def variant() -> cpp.Variant:
    """How a candidate is built to be counted."""
    return cpp.Variant("count", (f"-march={level()}", "-g"), ())


def look() -> Source:
    """Say whether valgrind is here."""
    path = shutil.which("valgrind")
    said = sandbox.ask([path, "--version"]) if path else None
    if said is None:
        return Source("valgrind", have=False, detail="not installed, or it does not run", get=GET)
    return Source("valgrind", have=True, detail=f"{said.strip()}; kernels are counted as built for {level()}")


@dataclass(slots=True)
class Counts:
    """What one call costs: totals by event, by line of the candidate, and instructions by address in its object."""

    totals: dict[str, int] = field(default_factory=dict)
    lines: dict[int, Counter[str]] = field(default_factory=dict)
    addresses: Counter[int] = field(default_factory=Counter)
    problem: str = ""


def count(
    build: Build, operator: Operator, case: Case, seed: int, limits: Limits, masks: Sequence[Path] = ()
) -> tuple[Counts, dict[str, float]]:
    """Run one call of a case under callgrind; return its counts and the numbers that follow. Raises SandboxBroken."""
    valgrind = shutil.which("valgrind")
    if valgrind is None or build.artefact is None:
        return Counts(problem="valgrind is not installed"), {}
    program = sandbox.own_program(runs.NATIVE / "count.cpp", ("-ldl",))
    folder = Path(tempfile.mkdtemp(prefix="sagebook-count-"))
    folder.chmod(0o777)  # the confined program's own user writes its counts here
    try:
        shutil.copyfile(build.artefact, folder / "kernel.so")
        shutil.copyfile(program, folder / "count")
        folder.joinpath("count").chmod(0o755)
        folder.joinpath("call.bin").write_bytes(_call(operator, case, seed))
        wide = replace(limits, compile_memory=MEMORY, compile_seconds=limits.total_seconds)
        command = [valgrind, *_ARGUMENTS, "./count", "./kernel.so", "call.bin"]
        done = sandbox.run_command(command, folder, wide, masks, confined=True)
        out = folder / "counts.out"
        if done.timed_out or done.code != 0 or not out.exists():
            why = f"did not end within {wide.compile_seconds:g} s" if done.timed_out else f"ended with code {done.code}"
            return Counts(problem=f"callgrind {why}: {done.output.strip()[:300]}".rstrip(": ")), {}
        with out.open("rb") as file:
            counts = read(file.read(OUTPUT_BYTES).decode(errors="replace"))
        objdump = shutil.which("objdump")
        text = ""
        if objdump is not None:
            listing = [objdump, "-d", "--no-show-raw-insn", "kernel.so"]
            text = sandbox.run_command(listing, folder, limits, masks, keep=OUTPUT_BYTES).output
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts, _numbers(counts, operator, case, mix(counts, text))


def _call(operator: Operator, case: Case, seed: int) -> bytes:
    """Write a call as device/diagnose/native/count.cpp reads it."""
    rng = oracle.seeded(seed, "profile", case.name)
    outputs = operator.outputs(case)
    words = [len(case.inputs), len(outputs), len(case.attributes)]
    for spec in (*case.inputs, *outputs):
        words += [DTYPES[spec.dtype], spec.storage * element_bytes(spec.dtype), len(spec.shape)]
        words += [*spec.shape, *spec.layout]
    words += [int(bits) for bits in np.array([*case.attributes.values()], dtype=np.float64).view(np.int64)]
    data = b"".join(oracle.draw(spec, rng).tobytes() for spec in case.inputs)
    return struct.pack(f"<{len(words)}q", *words) + data


def read(text: str) -> Counts:
    """Read callgrind's output (its profile format, with instruction addresses and lines, nothing compressed)."""
    counts = Counts()
    events: list[str] = []
    in_object = in_source = skip = False
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if line.startswith("events: "):
            events = line.split()[1:]
        elif line.startswith(("summary: ", "totals: ")):
            counts.totals = dict(zip(events, map(int, line.split()[1:]), strict=False))
        elif equals and key == "ob":
            in_object = value.endswith("kernel.so")
        elif equals and key in {"fl", "fi", "fe"}:
            in_source = value.rpartition("/")[2] == "kernel.cpp"
        elif equals and key == "calls":
            skip = True  # the next line holds what the called function costs, which is counted there
        elif line.startswith("0x"):
            if not skip:
                _add(counts, events, line.split(), in_object=in_object, in_source=in_source)
            skip = False
    return counts


def _add(counts: Counts, events: Sequence[str], words: Sequence[str], *, in_object: bool, in_source: bool) -> None:
    costs = dict(zip(events, map(int, words[2:]), strict=False))
    if in_object:
        counts.addresses[int(words[0], 16)] += costs.get("Ir", 0)
    if in_object and in_source and words[1].isdigit():
        counts.lines.setdefault(int(words[1]), Counter()).update(costs)


_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(?:\{\w+\} |notrack |lock |rep[nz]* |bnd )*([a-z][\w.]*)\s*(.*)$")
_MOVES = tuple(
    f"{vex}{name}"
    for vex in ("", "v")
    for name in ("mov", "broadcast", "lddqu", "unpck", "shuf", "perm", "insert", "extract")
)
_NEON_VECTOR = re.compile(r"\bv\d+\.\d+[sdh]\b")


def instructions(listing: str) -> Iterator[tuple[int, str, str]]:
    """Yield address, name and operands of each instruction in what `objdump -d` prints."""
    for line in listing.splitlines():
        if match := _INSTRUCTION.match(line):
            yield int(match[1], 16), match[2], match[3]


def kind(name: str, operands: str) -> str:
    """Sort an instruction: "vector" or "scalar" floating-point arithmetic, or anything else."""
    if name.startswith("f") and os.uname().machine == "aarch64":
        if name.startswith(("fmov", "fcvt", "fcsel")):
            return "other"
        return "vector" if _NEON_VECTOR.search(operands) else "scalar"
    if name.startswith(_MOVES) or name.startswith(("cvt", "vcvt", "ucomi", "vucomi", "comi", "vcomi")):
        return "other"
    if name.endswith(("ps", "pd")):
        logic = name.lstrip("v").startswith(("and", "or", "xor", "blend", "cmp"))
        return "other" if logic or name.startswith(("prefetch", "vgather", "vmask", "vtest")) else "vector"
    return "scalar" if name.endswith(("ss", "sd")) and "%xmm" in operands else "other"


def mix(counts: Counts, listing: str) -> Mapping[str, int]:
    """Add up how often vector and scalar arithmetic of the candidate's object was run."""
    total: Counter[str] = Counter()
    for address, name, operands in instructions(listing):
        if address in counts.addresses:
            total[kind(name, operands)] += counts.addresses[address]
    return total


def _numbers(counts: Counts, operator: Operator, case: Case, mixed: Mapping[str, int]) -> dict[str, float]:
    totals = counts.totals
    inputs = sum(spec.elements for spec in case.inputs)
    elements = max(inputs, sum(spec.elements for spec in operator.outputs(case)))
    misses = totals.get("DLmr", 0) + totals.get("DLmw", 0)
    reached = totals.get("Dr", 0) + totals.get("Dw", 0)
    numbers = {
        "counted_instructions": float(totals.get("Ir", 0)),
        "instructions_an_element": totals.get("Ir", 0) / elements,
        "bytes_from_memory": float(misses * LINE_BYTES),
    }
    if reached:
        numbers["first_cache_miss_rate"] = (totals.get("D1mr", 0) + totals.get("D1mw", 0)) / reached
    arithmetic = mixed.get("vector", 0) + mixed.get("scalar", 0)
    if arithmetic > 0.01 * totals.get("Ir", 0):
        numbers["vector_share"] = mixed.get("vector", 0) / arithmetic
    own = sum(counts.addresses.values())
    if totals.get("Ir"):
        numbers["share_in_libraries"] = max(0.0, 1 - own / totals["Ir"])
    return numbers


def top(counts: Counts, source: str) -> tuple[Line, ...]:
    """The lines of the candidate that cost most instructions."""
    text = source.splitlines()
    total = max(1, counts.totals.get("Ir", 0))
    ordered = sorted(counts.lines.items(), key=lambda item: -item[1]["Ir"])[:TOP_LINES]
    return tuple(
        Line(
            number, costs["Ir"] / total, costs["Ir"], costs["DLmr"] + costs["DLmw"],
            text[number - 1].strip()[:100] if 0 < number <= len(text) else "",
        )
        for number, costs in ordered
    )  # fmt: skip
