"""What a candidate's text and its shared object may not hold: a table of small checks.

The jail is what keeps the machine safe; these checks refuse early and name the line. The checks that need a run
(poison, guard zones, repeats, idle time, clocks) are in `verify` and `measure`. Each check
names the known ways to fool a judge that it is for, by their numbers in the project's list of 34.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from device.types import Check

Level = Literal["strict", "warn", "off"]

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "threads": "warn",
    }
)
"""What a check that does not hold means: `strict` (whatever is not named here) refuses the candidate, `warn` is noted
in the report, and a check that is `off` is not made. This table speaks for all checks, those of `verify`, `measure` and
the languages too."""

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
    """A check of the text, and the numbers of the cheats that it is for."""

    name: str
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


_STATEMENTS = frozenset({"return", "else", "do", "throw", "case", "new", "delete", "and", "or", "not", "sizeof"})
_BEFORE = re.compile(r"(?:\b(?P<scope>\w+)\s*::|(?P<member>\.|->)|\b(?P<word>[^\W\d]\w*)[\s*&]+)\s*\Z")


def _forbidden_calls(source: Source) -> Iterator[Finding]:
    """Find calls by name; members and functions that the text declares itself are left to the look at its imports."""
    calls: list[tuple[int, str]] = []
    own: set[str] = set()
    for match in re.finditer(r"[^\W\d]\w*(?=\s*\()", source.code):
        word = match.group()
        if word.removeprefix("__") not in FORBIDDEN_CALLS:
            continue
        before = _BEFORE.search(source.code, max(0, match.start() - 200), match.start())
        if before and before["word"] and before["word"] not in _STATEMENTS:
            own.add(word)
        elif before and (before["member"] or (before["scope"] and (before["scope"] != "std" or word == "bind"))):
            continue
        else:
            calls.append((source.line(match.start()), word))
    for line, word in calls:
        if word not in own:
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


_ASSEMBLY = ("asm", "__asm", "__asm__")
_DEFINE = re.compile(r"(?:\#|%:)[ \t]*define[ \t]+\w+\(([^)]*)\)")
_PASTED = re.compile(r"(\w*)[ \t]*(?:\#\#|%:%:)[ \t]*(?=(\w*)[ \t]*(\#\#|%:%:)?)")


def _hidden_names(source: Source) -> Iterator[Finding]:
    """Find names that may be `asm` put together by a macro; every other forbidden name shows in the imports."""
    for match in re.finditer(r"\?\?|\\", source.code):
        yield Finding(source.line(match.start()), f"{match.group()}: names are written out")
    for number, line in enumerate(source.code.split("\n"), 1):
        define = _DEFINE.search(line)
        free = {name.strip() for name in define.group(1).split(",")} if define else set()
        for match in _PASTED.finditer(line):
            left, right, more = match.groups()
            inner = line[: match.start()].rstrip().endswith(("##", "%:%:"))
            begins = (lambda word, part: part in word) if inner else str.startswith
            ends = (lambda word, part: part in word) if more else str.endswith
            for word in _ASSEMBLY:
                if (left in free or begins(word, left)) and (right in free or ends(word, right)):
                    yield Finding(number, f"##: {left}##{right} can make {word} out of parts; names are written out")
                    break


def _threads(source: Source) -> Iterator[Finding]:
    for line, word in source.words():
        if word in {"pthread_create", "jthread", "async"}:
            yield Finding(line, f"{word}: a thread outside of OpenMP must be gone when the call returns")


SOURCE_CHECKS: tuple[SourceCheck, ...] = (
    SourceCheck("no forbidden calls", _forbidden_calls, (5, 16, 21, 25)),
    SourceCheck("no inline assembly", _assembly, (23, 25)),
    SourceCheck("plain includes", _includes, (16, 18, 25)),
    SourceCheck("no hidden names", _hidden_names, (19, 25)),
    SourceCheck("threads", _threads, (21,)),
)


def check_source(text: str) -> tuple[Check, ...]:
    """Apply every source check; a refused one has `ok` False and a detail that names the line."""
    source = read_source(text)
    checks = []
    for check in SOURCE_CHECKS:
        if level(check.name) != "off":
            found = next(check.find(source), None)
            checks.append(Check(check.name, found is None, f"line {found.line}: {found.what}" if found else ""))
    return settled(checks)


def level(name: str) -> Level:
    """Return what it means when the check of that name does not hold."""
    return LEVELS.get(name, "strict")


def settled(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Apply the levels: what only warns holds, and its detail says what was seen; what is off is gone."""
    return tuple(
        Check(check.name, ok=True, detail=f"warning: {check.detail}")
        if not check.ok and level(check.name) == "warn"
        else check
        for check in checks
        if level(check.name) != "off"
    )


def check_artefact(path: Path) -> tuple[Check, ...]:
    """Look at the names that the shared object takes from elsewhere and gives: what macros may have hidden."""
    taken, given = dynamic_symbols(path.read_bytes())
    bad = sorted(name for name in taken if name.removeprefix("__") in FORBIDDEN_CALLS)
    entry = "sagebook_kernel" in given
    foreign = sorted(name for name in _weak_imports(path.read_bytes()) if not name.startswith(_RUNTIME))
    return settled(
        (
            Check("no forbidden imports", not bad, f"the shared object calls {', '.join(bad)}" if bad else ""),
            Check(
                "imports from the C++ runtime alone",
                not foreign,
                f"{', '.join(foreign)}: a weak name is filled by whatever library is there" if foreign else "",
            ),
            Check("entry point", entry, "" if entry else 'there is no extern "C" function sagebook_kernel'),
        )
    )


def starts_pool(path: Path) -> bool:
    """Whether the shared object has a parallel region of OpenMP, whose threads outlive it in the library's pool."""
    return any(name.startswith(_REGIONS) for name in dynamic_symbols(path.read_bytes())[0])


_REGIONS = ("GOMP_parallel", "GOMP_teams")
"""Beginnings of the names by which GCC enters a region; what else it calls, and `omp_...`, starts no thread."""


def first_refusal(checks: Iterable[Check]) -> Check | None:
    """Return the first check that did not hold."""
    return next((check for check in checks if not check.ok), None)


_RUNTIME = ("_ITM_", "__gmon_start__", "__cxa_", "__pthread_", "pthread_", "_Jv_", "_ZGTt")
"""Beginnings of the weak names that the compiler itself leaves in a shared object."""


def dynamic_symbols(data: bytes) -> tuple[set[str], set[str]]:
    """Names that a 64-bit little-endian ELF shared object takes from others, and those that it gives."""
    symbols = list(_symbols(data))
    return {name for name, _, taken in symbols if taken}, {name for name, _, taken in symbols if not taken}


def _weak_imports(data: bytes) -> set[str]:
    """Names that a shared object takes where some library has them, and does without where none has."""
    return {name for name, weak, taken in _symbols(data) if weak and taken}


def _symbols(data: bytes) -> Iterator[tuple[str, bool, bool]]:
    """Yield name, weak, taken from others for each dynamic symbol (ELF-64 object file format, 1998)."""
    if data[:6] != b"\x7fELF\x02\x01":
        return
    table, size, count = (*struct.unpack_from("<Q", data, 0x28), *struct.unpack_from("<HH", data, 0x3A))
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        names = sections[link][4]
        for at in range(offset, offset + length, entry):
            name, info, _, section = struct.unpack_from("<IBBH", data, at)
            begin = names + name
            yield data[begin : data.index(b"\0", begin)].decode(errors="replace"), info >> 4 == 2, section == 0
