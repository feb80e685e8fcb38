"""`sagebook device …`: look at the machine, list the operators, judge one file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
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


@device.command(epilog="Example: sagebook device operators")
def operators(as_json: _JSON = False) -> None:
    """List the operators of the suite with their cases."""
    from device import operators as suite  # noqa: PLC0415

    chosen = [suite.get(name) for name in suite.names()]
    if as_json:
        _print({"operators": [
            {"name": op.name, "level": op.level, "family": op.family, "summary": op.summary, "dtypes": list(op.dtypes),
             "attributes": list(op.attributes), "cases": [case.line for case in op.cases],
             "expert": op.expert is not None, "deterministic": op.deterministic, "traps": list(op.traps)}
            for op in chosen
        ]})  # fmt: skip
        return
    for op in chosen:
        _say(f"{op.name:<18} level {op.level}  {op.family:<12} {op.summary}")


@device.command(epilog="Example: sagebook device evaluate kernel.cpp --operator softmax")
def evaluate(
    file: Annotated[Path, typer.Argument(help="The candidate's source, or - for standard input.")],
    operator: Annotated[str, typer.Option(help="Name of the operator, from `sagebook device operators`.")],
    seed: Annotated[int, typer.Option(help="Seed of the inputs and of the hidden cases.")] = 0,
    on: Annotated[str, typer.Option("--device", help="cpu, npu, cuda or null.")] = "cpu",
    language: Annotated[str, typer.Option(help="Language of the source.")] = "cpp",
    mode: Annotated[str, typer.Option(help="hardened, or paper: the source's protocol.")] = "hardened",
    rule: Annotated[str | None, typer.Option(help="hardened, npukernelbench or literal; else the mode's.")] = None,
    measure: Annotated[bool, typer.Option(help="Time a correct candidate against torch.")] = True,
    as_json: _JSON = False,
) -> None:
    """Judge one candidate. Exit code 0: correct; 7: judged and not correct; 1: could not be judged."""
    from typing import cast  # noqa: PLC0415

    import device as house  # noqa: PLC0415
    from device.errors import DeviceError  # noqa: PLC0415

    try:
        source = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="surrogateescape")
        report = house.evaluate(
            source, operator, device=on, language=language, mode=cast("Mode", mode),
            rule=cast("RuleName | None", rule), seed=seed, key=house.load_judge_key(), measure=measure,
        )  # fmt: skip
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
            _say(f"  errors    at most {failure['max_abs_error']} absolute, {failure['max_rel_error']} relative")
    if measure is not None:
        for case in measure["cases"]:
            _say(
                f"  {case['case']:<12} {case['candidate']['mean_ms']:.4f} ms +- {case['noise_ms']:.4f}, torch "
                f"{case['reference']['mean_ms']:.4f} ms, speedup {case['speedup']:.2f}"
            )
        _say(
            f"  latency   {measure['latency_ms']:.4f} ms +- {measure['noise_ms']:.4f}, speedup {measure['speedup']:.2f}"
        )
    _say(f"  report    {data['id']}, judge {report.judge_key}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")
