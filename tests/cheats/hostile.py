"""Hostile candidates in a row: after each the judge is alive, and nothing of the candidate is left on the machine.

    scripts/hostile --count 10000 --seed 1

Each is drawn by the seed from `tests/cheats/candidates` and from the deaths below, and changed: symbols get other
names, sizes other values, sleeps are put in front. Of each text there are at most `--variants` changed ones, so that
the cache of compiled kernels serves the rest. After each: no process, no folder or file, no shared memory and no
descriptor or thread more than before; every hundred an honest kernel must still be correct.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from device import JudgeKey, Limits, evaluate, load_judge_key
from device.errors import InvalidOperator
from device.operators.base import Operator
from tests.cheats.sources import HERE, language, operator, text
from tests.cheats.table import CHEATS
from tests.device.small import DOUBLE, kernel

LIMITS = Limits(call_seconds=1.0, memory=256 << 20, total_seconds=30.0)
HONEST_EVERY = 100
SHARED = Path("/dev/shm")  # noqa: S108  (looked at, never written)
WRITTEN = (Path("/tmp/sagebook-hostile"), Path("/tmp/sagebook-was-here"))  # noqa: S108  (where candidates try to write)
SEED, OTHER_SEEDS = 7, (8, 9, 10, 11)
"""A candidate that recognises inputs by a few of their elements computes honestly where the judge happened to change
one of these: what is correct under one seed is judged under the others before it counts as having got through."""


DEATHS = {
    "hang": ("for (volatile int i = 0;; i = 1) {}\n", ""),
    "null": ("*(volatile int *)0 = 1;\n", ""),
    "abort": ("abort();\n", "#include <cstdlib>\n"),
    "exit": ("_exit(3);\n", "#include <unistd.h>\n"),
    "memory": ("for (;;) { volatile char *p = new char[1 << 20]; for (int i = 0; i < 1 << 20; ++i) p[i] = 1; }\n", ""),
    "threads": ("for (;;) new std::thread([] { for (;;) pause(); });\n", "#include <thread>\n#include <unistd.h>\n"),
    "signals": ("signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); for (;;) pause();\n",
                "#include <csignal>\n#include <unistd.h>\n"),
    "shared memory": ('shm_open("/sagebook-hostile", 0102, 0600);\n',
                      "#include <fcntl.h>\n#include <sys/mman.h>\n"),
    "file": ('FILE *f = fopen("/tmp/sagebook-hostile", "w"); if (f) fputs("here", f);\n', "#include <cstdio>\n"),
    "deep": ("volatile char *p = deep(1); (void)p;\n",
             ("__attribute__((noinline)) volatile char *deep(int n) { volatile char room[4096]; room[n % 4096] = 1;\n"
             "    return n ? deep(n + 1) + room[0] : nullptr; }\n")),
    "prints": ('for (int i = 0; i < 100000; ++i) fprintf(stderr, "line %d\\n", i); abort();\n',
               "#include <cstdio>\n#include <cstdlib>\n"),
}  # fmt: skip
"""Kernels that die, hang or fill something, for the small operator that doubles its input."""


@dataclass(frozen=True)
class Hostile:
    """One candidate as it is drawn."""

    name: str
    source: str
    language: str
    task: Operator


@dataclass(frozen=True)
class Traces:
    """What of this machine a candidate could leave behind."""

    processes: frozenset[int]
    files: frozenset[str]
    segments: frozenset[str]
    descriptors: int
    threads: int

    def more_than(self, before: Traces) -> list[str]:
        """Name what is here and was not before."""
        found = [f"process {pid}" for pid in sorted(self.processes - before.processes)]
        found += [f"file {name}" for name in sorted(self.files - before.files)]
        found += [f"segment {name}" for name in sorted(self.segments - before.segments)]
        if self.descriptors > before.descriptors:
            found.append(f"{self.descriptors - before.descriptors} descriptors")
        if self.threads > before.threads:
            found.append(f"{self.threads - before.threads} threads")
        return found


def traces(place: Path) -> Traces:
    """Look at this process's descendants, the judge's folders, shared memory, descriptors and threads."""
    segments = {entry.name for entry in SHARED.iterdir() if "sagebook" in entry.name or entry.name == "answer"}
    with contextlib.suppress(OSError, IndexError):
        # Of other users' segments on a shared machine nothing is known: those of the judge's kernels have high ids.
        for line in Path("/proc/sysvipc/shm").read_text(encoding="utf-8").splitlines()[1:]:
            if int(line.split()[7]) >= 2_000_000_000:
                segments.add(f"shmid {line.split()[1]}")
    files = {entry.name for entry in place.iterdir()}
    files |= {str(path) for path in WRITTEN if path.exists()}
    return Traces(
        frozenset(_descendants()), frozenset(files), frozenset(segments), len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count(),
    )  # fmt: skip


def _descendants() -> Iterator[int]:
    """Yield processes that this one has below it, and those of the users that the jail makes up."""
    above: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                above[int(entry.name)] = int(entry.joinpath("stat").read_bytes().rpartition(b")")[2].split()[1])
    for pid, parent in above.items():
        at = parent
        while at > 1 and at != os.getpid():
            at = above.get(at, 0)
        if at == os.getpid():
            yield pid


def pool(rng: random.Random, variants: int) -> list[Hostile]:
    """Return every hostile text in up to `variants` changed ways."""
    plain: list[Hostile] = []
    for cheat in CHEATS:
        # What needs a timed run to show itself is not among these: here nothing is timed.
        if cheat.measured or cheat.mode != "hardened":
            continue
        source = text(HERE / "candidates" / cheat.file)
        plain.append(Hostile(cheat.file, source, language(cheat.file), operator(cheat.operator)))
    for name, (body, includes) in DEATHS.items():
        plain.append(Hostile(name, kernel(body, includes=includes), "cpp", DOUBLE))
    changed = []
    for one in plain:
        changed += [
            Hostile(f"{one.name}#{number}", changed_text(one, rng, number), one.language, one.task)
            for number in range(variants)
        ]
    return changed


def changed_text(one: Hostile, rng: random.Random, number: int) -> str:
    """Rename symbols, change sizes, and put a sleep in front; variant 0 is the text as it is."""
    if number == 0:
        return one.source
    tail = f"_{rng.randrange(1 << 30):x}"
    names = sorted(
        set(re.findall(r"\b(?:static|inline)\s+(?:const\s+)?[\w:]+(?:<[^>]*>)?\s+\*?(\w+)\b(?=\s*[\[=;(])", one.source))
    )
    source = one.source
    for name in names[:4]:
        if name not in {"operator", "sagebook_kernel", "main"}:
            source = re.sub(rf"\b{name}\b", name + tail, source)
    # A size that is written as a product is the one at which a cheat begins: changed, it would be an honest kernel.
    source = re.sub(r"(?<!\* )\b(4096|1024|100000)\b", lambda m: str(int(m[1]) * rng.choice((1, 2, 3))), source)
    if one.language == "cpp":
        pause = f"static const int pause{tail} = (usleep({rng.randrange(1, 20000)}), 0);\n"
        return f"#include <unistd.h>\n{source}\n{pause}__attribute__((used)) static const int *keep{tail} = &pause{tail};\n"
    return f"{source}\n# {tail}\n"


@dataclass
class Run:
    """What a row of candidates came to."""

    judged: int = 0
    honest: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def run(count: int, seed: int, variants: int, *, key: JudgeKey, place: Path, most_problems: int = 20) -> Run:
    """Judge `count` hostile candidates and look for what is left after each; `place` is the judge's temporary folder."""
    rng = random.Random(seed)
    hostile = pool(rng, variants)
    # One operator after the other within a hundred, as the judge keeps the answers of a few.
    drawn = [rng.choice(hostile) for _ in range(count)]
    seen = Run()
    begin = time.monotonic()
    _honest(key, seen)
    before = traces(place)
    for start in range(0, count, HONEST_EVERY):
        for one in sorted(drawn[start : start + HONEST_EVERY], key=lambda one: one.task.name):
            _one(one, key, place, before, seen)
            if len(seen.problems) >= most_problems:
                return seen
        _honest(key, seen)
        say(f"{seen.judged} judged, {time.monotonic() - begin:.0f} s, {dict(seen.outcomes)}", sys.stderr)
    seen.seconds = time.monotonic() - begin
    return seen


def _outcome(one: Hostile, key: JudgeKey, seed: int) -> str:
    try:
        report = evaluate(one.source, one.task, language=one.language, seed=seed, key=key, measure=False, limits=LIMITS)
    except InvalidOperator:
        return "task refused"
    return str(report.data["outcome"])


def _one(one: Hostile, key: JudgeKey, place: Path, before: Traces, seen: Run) -> None:
    outcome = _outcome(one, key, SEED)
    seen.judged += 1
    seen.outcomes[outcome] += 1
    if outcome == "correct" and all(_outcome(one, key, seed) == "correct" for seed in OTHER_SEEDS):
        seen.problems.append(f"{one.name}: judged correct")
    left = traces(place).more_than(before)
    for _ in range(20):  # the operating system takes a moment to take a process off its list
        if not left:
            return
        time.sleep(0.05)
        left = traces(place).more_than(before)
    seen.problems.append(f"{one.name}: left {', '.join(left)}")


def _honest(key: JudgeKey, seen: Run) -> None:
    data = evaluate(kernel(), DOUBLE, seed=SEED, key=key, measure=False, limits=LIMITS).data
    seen.honest += 1
    if data["outcome"] != "correct":
        seen.problems.append(f"an honest kernel after {seen.judged}: {data['outcome']}, {data['summary']}")


def say(line: str, stream: TextIO = sys.stdout) -> None:
    """Write one line."""
    stream.write(f"{line}\n")
    stream.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program; exit code 1 when something was left or the judge erred."""
    parser = argparse.ArgumentParser(
        prog="scripts/hostile", description="Hostile candidates in a row, through the judge."
    )
    parser.add_argument("--count", type=int, default=10_000, help="candidates in the row (10000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of what is drawn and how it is changed (1)")
    parser.add_argument("--variants", type=int, default=8, help="changed texts of each candidate (8)")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        tempfile.tempdir = folder  # the judge's folders lie here, and nobody else's
        place = Path(folder)
        key = load_judge_key(place / "judge.key")
        seen = run(chosen.count, chosen.seed, chosen.variants, key=key, place=place)
    say(f"{seen.judged} hostile candidates, {seen.honest} honest kernels, {seen.seconds:.0f} s: {dict(seen.outcomes)}")
    for problem in seen.problems:
        say(problem)
    return 1 if seen.problems or seen.judged < chosen.count else 0


if __name__ == "__main__":
    sys.exit(main())
