"""Reads what sanitizers print (GCC's libsanitizer, without its own symbolizer) into reports.

The text comes from the candidate's process, so it may be anything; what is not a report is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from device.diagnose.types import Report

OWN_FILES = frozenset({"wrap.cpp", "openmp.cpp"})
"""The judge's own, compiled in with the candidate."""

_FRAME = re.compile(r"^\s*#\d+ (?:0x[0-9a-f]+ )?.*\((?:[^()]*/)?(?P<module>[^()/+]+)\+(?P<at>0x[0-9a-f]+)\)")
_ADDRESS = re.compile(r"kernel(?:\.so)?\+(0x[0-9a-f]+)\)|/proc/self/fd/\d+\+(0x[0-9a-f]+)\)")
_ASAN = re.compile(r"==\d+==ERROR: AddressSanitizer: (?P<kind>[\w-]+(?: [\w-]+)*?)(?: on | \(|:|$)", re.MULTILINE)
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+)", re.MULTILINE)
_NEAR = re.compile(
    r"is located (\d+ bytes? (?:to the (?:left|right) of|inside of|before|after) [^\[\n]*?)\s*\[", re.MULTILINE
)
_BESIDE = re.compile(
    r"^sagebook: (\d+ bytes (?:after the end|before the begin) of (?:input|output) \d+)$", re.MULTILINE
)
_SEGV = re.compile(r"caused by a (READ|WRITE) memory access")
_UBSAN = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):(?P<column>\d+): runtime error: (?P<message>.*)$", re.MULTILINE)
_TSAN = re.compile(r"^WARNING: ThreadSanitizer: (?P<kind>[^(\n]+?) \(pid=\d+\)$", re.MULTILINE)
_TSAN_ACCESS = re.compile(r"^  (?P<previous>Previous )?(?:atomic )?(?P<how>[Rr]ead|[Ww]rite) of size (?P<size>\d+)")
_END = "=================="

_KINDS: tuple[tuple[str, str], ...] = (
    ("signed integer overflow", "signed-overflow"),
    ("misaligned address", "misaligned-access"),
    ("null pointer", "null-pointer"),
    ("out of bounds", "index-out-of-bounds"),
    ("shift exponent", "shift-exponent"),
    ("left shift", "shift-overflow"),
    ("division by zero", "division-by-zero"),
    ("is outside the range", "float-cast-overflow"),
    ("not a valid value for type", "invalid-value"),
    ("insufficient space", "object-size"),
    ("variable length array", "array-bound"),
    ("reached the end of a value-returning function", "missing-return"),
    ("pointer index expression", "pointer-overflow"),
    ("applying", "pointer-overflow"),
    ("negation of", "signed-overflow"),
)  # fmt: skip

_ADVICE: Mapping[str, str] = {
    "heap-buffer-overflow": "the buffer is smaller than what is read or written: is its size that of the padded tile?",
    "stack-buffer-overflow": "the array on the stack is smaller than the loop over it",
    "global-buffer-overflow": "the table is smaller than the index",
    "use-after-poison": "memory outside of the tensor: mask the tail, or stop the loop before it",
    "heap-use-after-free": "the buffer lives shorter than its use: a vector that grew, or a free before the last read",
    "stack-use-after-return": "a pointer to a local variable outlives its function",
    "stack-use-after-scope": "a pointer to a local variable outlives its block",
    "double-free": "two owners free one buffer",
    "SEGV": "an address that is no memory: a null or wild pointer, an index far outside",
    "signed-overflow": "compute indices and sizes in int64_t",
    "misaligned-access": "load with the unaligned instruction, or memcpy; a view need not begin at a vector's border",
    "index-out-of-bounds": "the array is smaller than the index",
    "shift-exponent": "the shift is as wide as the type, or negative",
    "division-by-zero": "a size or a count is 0 here",
    "data race": "two threads use one place and one of them writes: make it private, a reduction, or atomic",
}


@dataclass(frozen=True, slots=True)
class Place:
    """One line of the candidate's text that an address belongs to; of inlined functions the innermost comes first."""

    function: str
    file: str
    line: int


def advice(kind: str) -> str:
    """What makes kernels show this, and what to change."""
    return _ADVICE.get(kind, "")


def addresses(text: str) -> Iterator[str]:
    """Yield the places within the candidate's shared object that a text names."""
    for match in _ADDRESS.finditer(text):
        yield match.group(1) or match.group(2)


def places(output: str) -> dict[str, tuple[Place, ...]]:
    """Read what `addr2line -a -f -C -i` prints: an address, then pairs of function and file:line."""
    found: dict[str, list[Place]] = {}
    now: list[Place] = []
    lines = iter(output.splitlines())
    for line in lines:
        if line.startswith("0x"):
            now = found.setdefault(hex(int(line, 16)), [])
            continue
        file, _, number = next(lines, "").partition(" ")[0].rpartition(":")
        if number.isdigit():
            now.append(Place(line, file.rpartition("/")[2], int(number)))
    return {address: tuple(lines) for address, lines in found.items()}


def read(text: str, where: Mapping[str, Sequence[Place]]) -> Iterator[Report]:
    """Yield the reports in a text; `where` gives the lines of addresses in the candidate's shared object."""
    yield from _undefined(text)
    if (found := _ASAN.search(text)) is not None:
        yield _address(text[found.start() :], found.group("kind"), where)
    for match in _TSAN.finditer(text):
        end = text.find(_END, match.end())
        yield _thread(text[match.end() : end if end > 0 else None], match.group("kind"), where)


def _undefined(text: str) -> Iterator[Report]:
    for match in _UBSAN.finditer(text):
        if match["file"].rpartition("/")[2] in OWN_FILES:
            continue
        message = match["message"]
        kind = next((name for words, name in _KINDS if words in message), "undefined-behaviour")
        access: Literal["read", "write"] | None = None
        if kind in {"misaligned-access", "null-pointer"}:
            access = "write" if message.startswith("store") else "read" if message.startswith("load") else None
        yield Report(
            "undefined", kind, message, match["file"].rpartition("/")[2], int(match["line"]), int(match["column"]),
            access=access,
        )  # fmt: skip


def _address(text: str, kind: str, where: Mapping[str, Sequence[Place]]) -> Report:
    head = text.split("\n\n", 1)[0]
    access, seen = _ACCESS.search(head), _SEGV.search(text)
    how, size = (access.group(1), int(access.group(2))) if access else (seen.group(1) if seen else "", None)
    own = _own(_stack(head.splitlines()), where)
    rest = text[len(head) :]
    other = _own(_stack(rest.splitlines()), where)
    near, beside = _NEAR.search(text), _BESIDE.search(text)
    words = f"{size} bytes " if size else ""
    doing = {"READ": f"read {words}", "WRITE": f"wrote {words}"}.get(how, "")
    if beside:
        message = f"{doing}{beside.group(1)}"
    else:
        located = near.group(1).replace("to the right of", "after").replace("to the left of", "before") if near else ""
        message = f"{doing}{located}".strip() or kind
    if near and other:
        message += f" (its memory came from, or was freed at, {other[0]})" if "heap" in kind else ""
    first = _first(_stack(head.splitlines()), where)
    return Report(
        "address", kind, message, first.file if first else None, first.line if first else None,
        function=_short(first.function) if first else None,
        access="read" if how == "READ" else "write" if how == "WRITE" else None, size=size, frames=own, other=other,
    )  # fmt: skip


def _thread(text: str, kind: str, where: Mapping[str, Sequence[Place]]) -> Report:
    parts: list[tuple[re.Match[str], list[str]]] = []
    rest: list[str] | None = None
    for line in text.splitlines():
        if (access := _TSAN_ACCESS.match(line)) is not None:
            rest = []
            parts.append((access, rest))
        elif not line.strip():
            rest = None
        elif rest is not None:
            rest.append(line)
    stacks = [_stack(lines) for _, lines in parts]
    firsts = [_first(stack, where) for stack in stacks]
    at = [f"{first.file}:{first.line}" if first else "outside of the candidate" for first in firsts]
    hows = [f"{access['how'].lower()} of {access['size']} bytes" for access, _ in parts]
    message = " against a ".join(f"{how} at {place}" for how, place in zip(hows, at, strict=True))
    first = next((one for one in firsts if one), None)
    return Report(
        "thread", kind, message or kind, first.file if first else None,
        first.line if first else None, function=_short(first.function) if first else None,
        access=("write" if parts[0][0]["how"].lower() == "write" else "read") if parts else None,
        size=int(parts[0][0]["size"]) if parts else None,
        frames=_own(stacks[0], where) if stacks else (),
        other=_own(stacks[1], where) if len(stacks) > 1 else (),
    )  # fmt: skip


def _stack(lines: Sequence[str]) -> tuple[str, ...]:
    """Addresses of the frames that lie in the candidate's shared object, innermost first."""
    return tuple(at for line in lines if _FRAME.match(line) for at in addresses(line))


def _first(stack: Sequence[str], where: Mapping[str, Sequence[Place]]) -> Place | None:
    return next((place for at in stack for place in where.get(at, ()) if place.file == "kernel.cpp"), None)


def _own(stack: Sequence[str], where: Mapping[str, Sequence[Place]]) -> tuple[str, ...]:
    lines = (
        f"{_short(place.function)} {place.file}:{place.line}"
        for at in stack
        for place in where.get(at, ())
        if place.file not in OWN_FILES
    )
    return tuple(dict.fromkeys(lines))[:20]


def _short(function: str) -> str:
    """A function's name without parameters and the compiler's additions."""
    name = re.sub(r"\s*\[clone [^\]]*\]|\._omp_fn\.\d+", "", function)
    name = name.replace("(anonymous namespace)::", "").replace("operator()", "lambda").partition("(")[0]
    return "sagebook_kernel" if name == "sagebook_candidate" else name
