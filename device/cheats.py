"""What a candidate's text and its shared object may not hold: a table of small checks.

The jail is what keeps the machine safe; these checks refuse early and name the line. The checks that need a run
(poison, guard zones, repeats, idle time, clocks) are in `verify` and `measure`. Each check
names the known ways to fool a judge that it is for, by their numbers in the project's list of 34.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from device.types import Check

Severity = Literal["refuse", "note"]

_CALLS = """
system popen fork vfork clone clone3 execl execle execlp execv execve execveat execvp execvpe fexecve posix_spawn
posix_spawnp dlopen dlmopen dlsym dlvsym dladdr syscall ptrace socket socketpair connect bind listen accept accept4
sendto recvfrom process_vm_readv process_vm_writev unshare setns mount umount pivot_root chroot memfd_create shm_open
shm_unlink shmget shmat mkfifo bpf perf_event_open seccomp io_uring_setup personality init_module reboot
"""
FORBIDDEN_CALLS = frozenset(_CALLS.split())
"""C functions that start processes, load libraries, open sockets, look into other processes or leave the sandbox."""

_TOKEN = re.compile(
    r"""
    (?P<raw>(?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\((?:.|\n)*?\)(?P=fence)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<comment>//[^\n]*|/\*(?:.|\n)*?(?:\*/|\Z))
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[A-Za-z0-9_.])*)
  | (?P<word>[^\W\d]\w*)
  | (?P<other>.|\n)
    """,
    re.VERBOSE,
)
_INCLUDE = re.compile(r"^[ \t]*(?:\#|%:)[ \t]*(include_next|include|import|embed)\b[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_PLAIN_HEADER = re.compile(r'<[A-Za-z0-9_+./-]+>|"[A-Za-z0-9_+./-]+"')


@dataclass(frozen=True, slots=True)
class Source:
    """A candidate's text, seen as the compiler sees it; all three keep the line numbers of the original."""

    text: str
    bare: str
    """Comments are blank."""
    code: str
    """Comments and literals are blank."""

    def words(self) -> Iterator[tuple[int, str]]:
        """Yield each identifier with its line number."""
        for match in re.finditer(r"[^\W\d]\w*", self.code):
            yield self.line(match.start()), match.group()

    def line(self, position: int) -> int:
        """Return the line number, from 1, of a position in `code` or `bare`."""
        return self.code.count("\n", 0, position) + 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found, and where; line 0 is the shared object."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """A check of the text: findings of severity `refuse` end the evaluation, others are noted in the report."""

    name: str
    severity: Severity
    find: Callable[[Source], Iterator[Finding]]
    cheats: tuple[int, ...] = ()


def read_source(text: str) -> Source:
    """Take a text apart as the C++ lexer does: joined lines, comments, literals."""
    joined = _join_lines(text)
    bare: list[str] = []
    code: list[str] = []
    for match in _TOKEN.finditer(joined):
        token, kind = match.group(), match.lastgroup
        kind = "raw" if kind == "fence" else kind
        blank = re.sub(r"[^\n]", " ", token)
        bare.append(blank if kind == "comment" else token)
        code.append(blank if kind in {"comment", "raw", "string", "char"} else token)
    return Source(text, "".join(bare), "".join(code))


def _join_lines(text: str) -> str:
    """Take back line continuations; the lines they took stay as empty ones after the joined line."""
    out: list[str] = []
    owed = 0
    for line in text.replace("\r\n", "\n").split("\n"):
        stripped = line.rstrip(" \t\f\v\r")
        if stripped.endswith("\\"):
            out.append(stripped[:-1])
            owed += 1
        else:
            out.append(line + "\n" * (owed + 1))
            owed = 0
    return "".join(out)


def _forbidden_calls(source: Source) -> Iterator[Finding]:
    for line, word in source.words():
        if word.removeprefix("__") in FORBIDDEN_CALLS:
            rest = source.code.split("\n")[line - 1].partition(word)[2].lstrip()
            if rest.startswith("("):
                yield Finding(line, f"{word}: kernels start no process, open no socket and load no library")


def _assembly(source: Source) -> Iterator[Finding]:
    for line, word in source.words():
        if word in {"asm", "__asm", "__asm__"}:
            yield Finding(line, f"{word}: inline assembly can make system calls; use intrinsics")


def _includes(source: Source) -> Iterator[Finding]:
    for match in _INCLUDE.finditer(source.bare):
        directive, name = match.groups()
        line = source.line(match.start(1))
        if directive != "include":
            yield Finding(line, f"#{directive}: only #include brings in a header")
        elif not _PLAIN_HEADER.fullmatch(name) or ".." in name or name[1] == "/":
            yield Finding(line, f"#include {name}: a header is named without an absolute path, `..` or a macro")


def _hidden_names(source: Source) -> Iterator[Finding]:
    for match in re.finditer(r"##|%:%:|\?\?|\\", source.code):
        yield Finding(source.line(match.start()), f"{match.group()}: names are written out, not put together")


def _threads(source: Source) -> Iterator[Finding]:
    for line, word in source.words():
        if word in {"pthread_create", "jthread", "async"}:
            yield Finding(line, f"{word}: a thread outside of OpenMP must be gone when the call returns")


SOURCE_CHECKS: tuple[SourceCheck, ...] = (
    SourceCheck("no forbidden calls", "refuse", _forbidden_calls, (5, 16, 21, 25)),
    SourceCheck("no inline assembly", "refuse", _assembly, (23, 25)),
    SourceCheck("plain includes", "refuse", _includes, (16, 18, 25)),
    SourceCheck("no hidden names", "refuse", _hidden_names, (19, 25)),
    SourceCheck("threads", "note", _threads, (21,)),
)


def check_source(text: str) -> tuple[Check, ...]:
    """Apply every source check; a refused one has `ok` False and a detail that names the line."""
    source = read_source(text)
    checks = []
    for check in SOURCE_CHECKS:
        found = next(check.find(source), None)
        detail = f"line {found.line}: {found.what}" if found else ""
        checks.append(Check(check.name, found is None or check.severity == "note", detail))
    return tuple(checks)


def check_artefact(path: Path) -> tuple[Check, ...]:
    """Look at the names that the shared object takes from elsewhere and gives: what macros may have hidden."""
    taken, given = dynamic_symbols(path.read_bytes())
    bad = sorted(name for name in taken if name.removeprefix("__") in FORBIDDEN_CALLS)
    entry = "sagebook_kernel" in given
    return (
        Check("no forbidden imports", not bad, f"the shared object calls {', '.join(bad)}" if bad else ""),
        Check("entry point", entry, "" if entry else 'there is no extern "C" function sagebook_kernel'),
    )


def first_refusal(checks: Iterable[Check]) -> Check | None:
    """Return the first check that did not hold."""
    return next((check for check in checks if not check.ok), None)


def dynamic_symbols(data: bytes) -> tuple[set[str], set[str]]:
    """Names that a 64-bit little-endian ELF shared object takes from others, and those that it gives (ELF-64, 1998)."""
    taken: set[str] = set()
    given: set[str] = set()
    if data[:6] != b"\x7fELF\x02\x01":
        return taken, given
    table, size, count = (*struct.unpack_from("<Q", data, 0x28), *struct.unpack_from("<HH", data, 0x3A))
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", data, at)
            begin = names + name
            text = data[begin : data.index(b"\0", begin)].decode(errors="replace")
            (given if section else taken).add(text)
    return taken, given
