"""What the judge takes, and how far its verdicts and intervals can be trusted.

`python -m benchmarks.judge [PART ...] [--kernelbench CHECKOUT]`; parts are `speed`, `cheats`, `hostile` and
`intervals`, which takes ten minutes over all operators (`--suite`, `--operators` choose some). Nothing else should
run on the machine. `docs/judge.md` says what each figure is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from device import JudgeKey, Limits, evaluate, load_judge_key, operators
from device.backends.cpu import CpuBackend
from device.errors import InvalidOperator
from device.operators.base import Operator
from tests.cheats.controls import CONTROLS, MEASURED
from tests.cheats.hostile import run as hostile_row
from tests.cheats.sources import HERE, language, operator, text
from tests.cheats.table import CHEATS, Cheat, ordered
from tests.device.small import DOUBLE, kernel

PARTS = ("speed", "cheats", "hostile", "intervals")
SEED, TIMES, COMPILES = 7, 10, 3
STARTERS = ("gelu", "softmax")
HOSTILE = 300
TRIES = 3
"""An honest kernel whose timing is unusual may be timed so often, as the judge's own tests do on a shared machine."""


def _seconds(call: Callable[[int], object], times: int) -> list[float]:
    samples = []
    for turn in range(times):
        begin = time.perf_counter()
        call(turn)
        samples.append(time.perf_counter() - begin)
    return samples


def _line(name: str, samples: list[float]) -> str:
    ordered_samples = sorted(samples)
    p95 = ordered_samples[max(0, -(-len(samples) * 95 // 100) - 1)]
    return f"  {name:<64} {statistics.median(samples):>8.3f} {p95:>8.3f} {len(samples):>6}"


def _correct(source: str, task: Operator, key: JudgeKey, *, measure: bool, cached: bool) -> None:
    """Judge and make sure that the verdict is the expected one, and the kernel compiled or not as expected."""
    data = evaluate(source, task, seed=SEED, key=key, measure=measure).data
    if data["outcome"] != "correct" or data["compile"]["cached"] is not cached:
        raise SystemExit(f"{task.name}: {data['outcome']}, {data['summary']}; cached: {data['compile']['cached']}")


def speed(key: JudgeKey, folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Judging one small correct kernel, beside the floor and the peer."""
    yield f"  {'seconds':<64} {'median':>8} {'p95':>8} {'calls':>6}"
    for task, source in ((DOUBLE, kernel()), *((operators.get(n), operators.get(n).expert or "") for n in STARTERS)):
        for measure in (False, True):
            what = "verdict and times" if measure else "verdict"

            def cached(_: int, task: Operator = task, source: str = source, measure: bool = measure) -> None:
                _correct(source, task, key, measure=measure, cached=True)

            def anew(turn: int, task: Operator = task, source: str = source, measure: bool = measure) -> None:
                _correct(f"{source}\n// {time.time_ns()} {turn}\n", task, key, measure=measure, cached=False)

            evaluate(source, task, seed=SEED, key=key, measure=measure)
            yield _line(f"{task.name}: {what}", _seconds(cached, TIMES))
            yield _line(f"{task.name}: compiled anew, {what}", _seconds(anew, COMPILES))
    from benchmarks.peers import kernelbench as peer  # noqa: PLC0415 - loads no torch, but only this part needs it

    library = CpuBackend().build(operators.get("gelu").expert or "", "cpp", Limits()).artefact
    fresh = [sys.executable, "-m", "benchmarks.peers.fresh", str(library), str(peer.ROWS), str(peer.COLUMNS)]
    floor = _seconds(lambda _: subprocess.run(fresh, check=True), COMPILES)  # noqa: S603 - a module of ours
    yield _line("floor: new python, torch, gelu and its kernel once", floor)
    if options.kernelbench is None:
        yield "  KernelBench's own evaluation: no checkout (--kernelbench PATH)"
        return
    command = [sys.executable, "-m", "benchmarks.peers.kernelbench", str(options.kernelbench), str(folder / "peer")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a module of ours
    if done.returncode != 0:
        yield f"  KernelBench's own evaluation failed: {done.stderr.strip().splitlines()[-1]}"
        return
    for name, samples in json.loads(done.stdout).items():
        yield _line(f"KernelBench on gelu, one process: {name}", samples)


def _refused(cheat: Cheat, key: JudgeKey) -> bool:
    try:
        data = evaluate(
            text(HERE / "candidates" / cheat.file), operator(cheat.operator), language=language(cheat.file),
            mode=cheat.mode, seed=SEED, key=key, measure=cheat.measured,
        ).data  # fmt: skip
    except InvalidOperator as error:
        return cheat.outcome == "task" and cheat.words in str(error)
    return data["outcome"] == cheat.outcome and cheat.words in data["summary"]


def _passed(file: str, key: JudgeKey) -> bool:
    timed = file in MEASURED
    for _ in range(TRIES if timed else 1):
        data = evaluate(
            text(HERE / "controls" / file), operator(CONTROLS[file]), language=language(file), seed=SEED, key=key,
            measure=timed,
        ).data  # fmt: skip
        if data["outcome"] == "correct":
            return True
    return False


def cheats(key: JudgeKey, _: Path, __: argparse.Namespace) -> Iterator[str]:
    """Known ways to fool a judge that are refused by the verdict that names them, and honest kernels that pass."""
    missed = [cheat for cheat in ordered(CHEATS) if not _refused(cheat, key)]
    rows = {cheat.row for cheat in CHEATS}
    held = len(rows) - len({cheat.row for cheat in missed})
    yield f"  {held} of {len(rows)} kinds refused, {len(CHEATS) - len(missed)} of {len(CHEATS)} candidates"
    yield "  kind 34 of the list, exchanged legs, is no candidate's doing: tests/cheats/test_legs.py"
    yield from (f"  not refused as it should be: {cheat.file} on {cheat.operator}" for cheat in missed)
    wrong = [file for file in sorted(CONTROLS, key=lambda name: CONTROLS[name]) if not _passed(file, key)]
    yield f"  {len(CONTROLS) - len(wrong)} of {len(CONTROLS)} honest controls passed"
    yield from (f"  not passed: {file}" for file in wrong)


def hostile(_: JudgeKey, folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Hostile candidates in a row; after each, nothing of it may be left."""
    place, before = folder / "hostile", tempfile.tempdir
    place.mkdir()
    tempfile.tempdir = str(place)  # the judge's folders lie here, and nobody else's
    try:
        seen = hostile_row(options.count, 1, 8, key=load_judge_key(place / "judge.key"), place=place)
    finally:
        tempfile.tempdir = before
    yield (
        f"  {seen.judged} hostile candidates and {seen.honest} honest kernels in {seen.seconds:.0f} s: "
        f"{seen.judged / max(seen.seconds, 1e-9):.1f} a second; {len(seen.problems)} problems"
    )
    yield from (f"  {problem}" for problem in seen.problems)


def intervals(key: JudgeKey, _: Path, options: argparse.Namespace) -> Iterator[str]:
    """Torch against itself beside the expert kernel of every operator: how often the 95 % interval contains 1."""
    chosen = options.operators.split(",") if options.operators else operators.names(options.suite)
    cases = first = 0
    widths, speedups, tried = [], [], 0
    for name in chosen:
        task = operators.get(name)
        if task.expert is None:
            continue
        tried += 1
        data: dict[str, Any] = evaluate(task.expert, task, seed=SEED, key=key).data
        if data["measure"] is None:
            yield f"  {name}: {data['outcome']}, {data['summary']}"
            continue
        speedups.append((name, data["measure"]["speedup"], *data["measure"]["speedup_interval"]))
        for case in data["measure"]["cases"]:
            cases += 1
            first += case["itself"]["tries"] == 1
            low, high = case["itself"]["interval"]
            widths.append(high / low - 1.0)
    if not widths:
        return
    slower = sorted(one for one in speedups if one[3] < 1.0)
    yield (
        f"  {first} of {cases} timed cases: the first A/A interval contains 1 ({first / cases:.1%}); "
        f"intervals are {statistics.median(widths):.1%} wide at the median, {max(widths):.1%} at most"
    )
    yield f"  {len(speedups)} of {tried} expert kernels measured, {len(slower)} slower than torch beyond the interval"
    yield from (f"  slower: {name} {value:.3f} ({low:.3f} to {high:.3f})" for name, value, low, high in slower)


def main(arguments: list[str] | None = None) -> int:
    """Measure the chosen parts and print them."""
    parser = argparse.ArgumentParser(prog="scripts/bench judge --", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which ones, default all: {', '.join(PARTS)}")
    parser.add_argument("--kernelbench", type=Path, help="a checkout of KernelBench, the peer of `speed`")
    parser.add_argument("--suite", default="all", help="of `intervals`: starter, npukernelbench, fused or all")
    parser.add_argument("--operators", help="of `intervals`, by name, separated by commas")
    parser.add_argument("--count", type=int, default=HOSTILE, help=f"candidates of `hostile` ({HOSTILE})")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    run = {"speed": speed, "cheats": cheats, "hostile": hostile, "intervals": intervals}
    with tempfile.TemporaryDirectory(prefix="sagebook-bench-") as folder:
        key = load_judge_key(Path(folder) / "judge.key")
        for part in options.parts or PARTS:
            summary = (run[part].__doc__ or "").splitlines()[0]
            print(f"{part}: {summary}", flush=True)
            for line in run[part](key, Path(folder), options):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
