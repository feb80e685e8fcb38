"""`sagebook device …`: look at the machine, list the operators, judge one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from device import cli_diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from device.operators.base import Operator
    from device.report import SignedReport
    from device.types import Mode, RuleName

WRONG = 7
"""Exit code for a candidate that was judged and is not correct."""

FAILED = 1
"""Exit code where nothing could be judged; the reason is on standard error."""

_JSON = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

device = typer.Typer(
    help="Build, run, judge and measure kernels on this machine.",
    no_args_is_help=True,
    epilog="Example: sagebook device doctor",
)


cli_diagnose.register(device)


def register(app: typer.Typer) -> None:
    """Add the device's commands to the one command line."""
    app.add_typer(device, name="device")


@device.command(epilog="Example: sagebook device doctor --json")
def doctor(as_json: _JSON = False) -> None:
    """Say what this machine has for judging kernels, what it lacks, and how to get it."""
    from dataclasses import asdict  # noqa: PLC0415  (commands load what they need when they run)

    from device.doctor import examine  # noqa: PLC0415

    findings = examine()
    if as_json:
        _print({"findings": [asdict(finding) for finding in findings]})
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            _say(f"{'ok  ' if finding.have else 'lack'}  {finding.name:<{width}}  {finding.detail}")
            if finding.get:
                _say(f"      {'':<{width}}  get it: {finding.get}")
    if any(not finding.have and finding.needed_by == "cpu" for finding in findings):
        raise typer.Exit(FAILED)


@device.command(epilog="Example: sagebook device operators --suite all")
def operators(
    name: Annotated[str | None, typer.Argument(help="Show this operator alone, in full.")] = None,
    suite: Annotated[str, typer.Option(help="starter, npukernelbench, fused or all.")] = "starter",
    check: Annotated[bool, typer.Option("--check", help="Hold each operator against itself; needs torch.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="With --check: run the full-sized cases, expert kernels on them too.")
    ] = False,
    memory: Annotated[float, typer.Option(help="GiB that one full-sized case may take; others are left out.")] = 8.0,
    as_json: _JSON = False,
) -> None:
    """List the operators of a suite with their cases, show one, or check them. Exit code 7: a check found something."""
    from device import operators as suites  # noqa: PLC0415
    from device.errors import DeviceError  # noqa: PLC0415

    try:
        chosen = [suites.get(one) for one in ((name,) if name else suites.names(suite))]
    except DeviceError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from error
    if full and not check:
        raise typer.BadParameter("--full goes with --check")
    if full:
        _check_full(chosen, int(memory * 2**30))
    elif check:
        _check(chosen)
    elif as_json:
        _print({"operators": [_record(operator) for operator in chosen]})
    elif name:
        _say("\n".join(_described(_record(chosen[0]))))
    else:
        width = max(18, *(len(operator.name) for operator in chosen))
        for operator in chosen:
            _say(f"{operator.name:<{width}} level {operator.level}  {operator.family:<12} {operator.summary}")


def _check(chosen: list[Operator]) -> None:
    """Say what is wrong with each operator."""
    from device.operators.check import problems  # noqa: PLC0415

    sound = True
    for operator in chosen:
        found = problems(operator)
        sound &= not found
        for problem in found or (f"{operator.name}: sound",):
            _say(problem)
    if not sound:
        raise typer.Exit(WRONG)


def _check_full(chosen: list[Operator], memory: int) -> None:
    """Say what came of each full-sized case, as it comes."""
    from device.operators.full import look  # noqa: PLC0415

    states: dict[str, int] = {"sound": 0, "wrong": 0, "left out": 0}
    for operator in chosen:
        for seen in look(operator, memory):
            states[seen.state] += 1
            _say(f"{seen.state:<8} {seen.operator} {seen.case}: {seen.detail}")
            sys.stdout.flush()
    _say(", ".join(f"{count} {state}" for state, count in states.items()))
    if states["wrong"]:
        raise typer.Exit(WRONG)


def _record(operator: Operator) -> dict[str, Any]:
    """Put an operator into plain data."""
    return {
        "name": operator.name, "level": operator.level, "family": operator.family, "summary": operator.summary,
        "dtypes": list(operator.dtypes), "attributes": list(operator.attributes),
        "cases": [case.line for case in operator.cases], "full_cases": [case.line for case in operator.full_cases],
        "expert": operator.expert is not None, "deterministic": operator.deterministic,
        "conditions": list(operator.conditions), "traps": list(operator.traps),
    }  # fmt: skip


def _described(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of one operator for a person."""
    expert = "with an expert kernel" if record["expert"] else "without an expert kernel"
    yield f"{record['name']}: level {record['level']}, {record['family']}, {', '.join(record['dtypes'])}, {expert}"
    yield f"  {record['summary']}"
    for title in ("conditions", "traps", "cases", "full_cases"):
        if record[title]:
            yield f"  {title.replace('_', '-')}:"
            yield from (f"    {line}" for line in record[title])


@device.command(epilog="Example: sagebook device suite KernelBench --task 19_ReLU")
def suite(
    path: Annotated[Path, typer.Argument(help="A checkout of KernelBench or of NPUKernelBench.")],
    form: Annotated[str | None, typer.Option(help="kernelbench or npukernelbench; else told by the folders.")] = None,
    task: Annotated[str | None, typer.Option(help="Look at this task alone.")] = None,
    as_json: _JSON = False,
) -> None:
    """Run each task of a suite's checkout once, confined, and list what loads, and what is refused and why."""
    from dataclasses import asdict, replace  # noqa: PLC0415

    from device.errors import DeviceError  # noqa: PLC0415
    from device.suites import listing, tasks  # noqa: PLC0415

    seen = []
    try:
        reading = tasks.read(path, form)
        if task is not None:
            one = reading.find(task)
            kept, bad = ((one,), ()) if isinstance(one, tasks.Task) else ((), (one,))
            reading = replace(reading, tasks=kept, refused=bad)
        total = len(reading.tasks) + len(reading.refused)
        for one_seen in listing.look(reading):
            seen.append(one_seen)
            if not as_json:
                _say(f"{one_seen.state:<8} {one_seen.name:<48} {one_seen.detail}")
            elif sys.stderr.isatty():
                typer.echo(f"\r{len(seen)} of {total}", err=True, nl=len(seen) == total)
    except DeviceError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from error
    if as_json:
        _print({"path": str(path), "form": reading.form, "tasks": [asdict(one_seen) for one_seen in seen]})
    else:
        loads = sum(one_seen.state == "loads" for one_seen in seen)
        _say(f"{reading.form}: {loads} of {total} tasks load, {total - loads} are refused")


@device.command(epilog="Example: sagebook device evaluate kernel.cpp --operator softmax")
def evaluate(
    file: Annotated[Path, typer.Argument(help="The candidate's source, or - for standard input.")],
    operator: Annotated[str, typer.Option(help="Name of the operator, from `sagebook device operators`.")] = "",
    seed: Annotated[int, typer.Option(help="Seed of the inputs and of the hidden cases.")] = 0,
    on: Annotated[str, typer.Option("--device", help="cpu, npu, cuda or null.")] = "cpu",
    language: Annotated[
        str | None,
        typer.Option(help="cpp or python, for a suite's task kernelbench too; else cpp, or told by the text."),
    ] = None,
    mode: Annotated[str, typer.Option(help="hardened, or paper: the source's protocol.")] = "hardened",
    rule: Annotated[str | None, typer.Option(help="hardened, npukernelbench or literal; else the mode's.")] = None,
    measure: Annotated[bool, typer.Option(help="Time a correct candidate against torch.")] = True,
    suite: Annotated[Path | None, typer.Option(help="A checkout of a public suite, with --task.")] = None,
    task: Annotated[str, typer.Option(help="Name of the task, from `sagebook device suite PATH`.")] = "",
    as_json: _JSON = False,
) -> None:
    """Judge one candidate. Exit code 0: correct; 7: judged and not correct; 1: could not be judged."""
    from typing import cast  # noqa: PLC0415

    import device as house  # noqa: PLC0415
    from device.errors import DeviceError  # noqa: PLC0415

    if (suite is None) == (not operator) or (suite is not None) != bool(task) or (suite is not None and on != "cpu"):
        raise typer.BadParameter("give --operator NAME, or on the cpu --suite PATH with --task NAME")
    try:
        source = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="surrogateescape")
        how: Any = {"mode": cast("Mode", mode), "rule": cast("RuleName | None", rule), "seed": seed, "measure": measure}
        if suite is None:
            report = house.evaluate(
                source, operator, device=on, language=language or "cpp", key=house.load_judge_key(), **how
            )
        else:
            from device.suites import command  # noqa: PLC0415

            report = command.evaluate(source, suite, task, language=language, key=house.load_judge_key(), **how)
    except (DeviceError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from error
    if as_json:
        signed = {"text": report.report, "signature": report.signature, "judge_key": report.judge_key}
        _print({"report": report.data, **signed})
    else:
        _show(report)
    if report.data["outcome"] != "correct":
        raise typer.Exit(WRONG)


def _show(report: SignedReport) -> None:
    """Print a report for a person: the outcome, the first bad element, the latencies."""
    data = report.data
    _say(f"{data['operator']['name']}: {data['outcome']}")
    _say(f"  {data['summary']}")
    built, verify, measure = data["compile"], data["verify"], data["measure"]
    if not built["ok"] and built["log"]:
        _say("\n".join(f"  | {line}" for line in built["log"].splitlines()[:40]))
    if verify is not None:
        _say(f"  cases     {verify['passed']} of {verify['cases']} passed in {verify['seconds']:.2f} s")
        failure = verify["failure"]
        if failure is not None and failure["index"] is not None:
            place = f"{failure['index']} of {failure['case']}"
            _say(f"  first bad {place}: expected {failure['expected']}, got {failure['got']}")
            _say(f"  wrong     {_region(failure['tile'])}")
            _say(f"  errors    at most {failure['max_abs_error']} absolute, {failure['max_rel_error']} relative")
    if measure is not None:
        for case in measure["cases"]:
            _say(
                f"  {case['case']:<12} {case['candidate']['mean_ms']:.4f} ms +- {case['noise_ms']:.4f}, torch "
                f"{case['reference']['mean_ms']:.4f} ms, speedup {_with_interval(case['speedup'], case)}; "
                f"torch against itself {case['itself']['ratio']:.3f}"
            )
        _say(
            f"  latency   {measure['latency_ms']:.4f} ms +- {measure['noise_ms']:.4f}, "
            f"speedup {_with_interval(measure['speedup'], measure)} (95 % intervals)"
        )
        before, after = measure["conditions"]["before"], measure["conditions"]["after"]
        clock = "" if after["mhz"] is None else f", cores at {after['mhz'][0]:.0f} to {after['mhz'][2]:.0f} MHz"
        _say(f"  machine   load {before['load']:.2f} before, {after['load']:.2f} after{clock}")
    _say(f"  report    {data['id']}, judge {report.judge_key}")


def _region(tile: dict[str, Any]) -> str:
    """The area round the first wrong element, as a slice."""
    axes = ", ".join(f"{low}:{high}" for low, high in zip(tile["start"], tile["stop"], strict=True))
    where = f", at the end of axis {', '.join(map(str, tile['tail']))}" if tile["tail"] else ""
    return f"[{axes}], {tile['wrong']} elements of it{where}"


def _with_interval(speedup: float, part: dict[str, Any]) -> str:
    low, high = part["speedup_interval"]
    return f"{speedup:.2f} ({low:.2f} to {high:.2f})"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
