"""`sagebook device diagnose FILE`: what is wrong with a kernel, or slow about it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from device.diagnose.types import BuildNote, CaseProfile, Compared, Diagnosis, Dump, Finding, Profile, Sanitized

FOUND, FAILED = 7, 1


def register(group: typer.Typer) -> None:
    """Add the command to the device's group."""
    group.command(epilog="Example: sagebook device diagnose kernel.cpp --operator softmax")(diagnose)


def diagnose(
    file: Annotated[Path, typer.Argument(help="The candidate's source in C++, or - for standard input.")],
    operator: Annotated[str, typer.Option(help="Name of the operator, from `sagebook device operators`.")],
    tool: Annotated[str, typer.Option(help="dump, sanitize, profile or all.")] = "all",
    seed: Annotated[int, typer.Option(help="Seed of the evaluation that is to be explained.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Find out which stage of a kernel goes wrong first, what sanitizers report, what its time is spent on.

    Exit code 0: nothing wrong was found; 7: something was; 1: nothing could be found out. A slow kernel is not wrong.
    """
    import device as house  # noqa: PLC0415  (commands load what they need when they run)
    from device.diagnose import candidate, form  # noqa: PLC0415
    from device.errors import DeviceError  # noqa: PLC0415

    try:
        source = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8", errors="surrogateescape")
        tools = candidate.TOOLS if tool == "all" else (tool,)
        found = house.diagnose_candidate(source, operator, tools=tools, seed=seed, key=house.load_judge_key())
    except (DeviceError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(FAILED) from error
    if as_json:
        sys.stdout.write(json.dumps(form.document(found), ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in shown(found)))
    if is_wrong(found):
        raise typer.Exit(FOUND)


def is_wrong(found: Diagnosis) -> bool:
    """Whether something is wrong with the candidate, beyond its speed."""
    unbuilt = found.dump is not None and not found.dump.build.ok
    return unbuilt or any(finding.tool != "profile" for finding in found.findings)


def shown(found: Diagnosis) -> Iterator[str]:
    """Yield the lines that a person reads: what was found first, then how."""
    count = len(found.findings)
    yield f"{found.operator}: {count or 'nothing'} found"
    for finding in found.findings:
        yield from _finding(finding)
    if found.dump is not None:
        yield from _dump(found.dump)
    if found.sanitize is not None:
        for run in found.sanitize.runs:
            yield from _sanitized(run)
    if found.profile is not None:
        yield from _profile(found.profile)


def _finding(finding: Finding) -> Iterator[str]:
    yield f"  {finding.tool:<9} {finding.kind}: {finding.message}"
    if finding.advice:
        yield f"  {'':<9} try: {finding.advice}"


def _dump(dump: Dump) -> Iterator[str]:
    where = f" on {dump.problem}, {dump.threads} thread{'s' if dump.threads != 1 else ''}" if dump.problem else ""
    yield f"dump: {dump.outcome}{where}"
    if dump.message:
        yield f"  {dump.message}"
    yield from _build(dump.build)
    for one in dump.compared:
        yield from _compared(one)


def _compared(one: Compared) -> Iterator[str]:
    shape = f" {list(one.shape)}" if one.shape is not None else ""
    if one.state != "wrong":
        yield f"  {one.state:<14} {one.name}{shape}{f': {one.note}' if one.note else ''}"
        return
    spans = ", ".join(f"{begin}:{end}" for begin, end in one.region or ())
    yield f"  {one.state:<14} {one.name}{shape}: {one.words}"
    yield f"  {'':<14} {one.wrong} of {one.elements} elements, first region [{spans}]"
    yield f"  {'':<14} at {list(one.index or ())}: expected {one.expected}, got {one.got}"


def _sanitized(run: Sanitized) -> Iterator[str]:
    threads = f"{run.threads} thread{'s' if run.threads != 1 else ''}"
    yield f"sanitize ({', '.join(run.sanitizers)}): {run.outcome}, {run.problems} problems, {threads}"
    if run.message:
        yield f"  {run.message.splitlines()[0]}"
    yield from _build(run.build)
    for report in run.reports:
        for frame in report.frames[:6]:
            yield f"  {report.kind:<24} {frame}"
        for frame in report.other[:4]:
            yield f"  {'  the other side':<24} {frame}"


def _profile(profile: Profile) -> Iterator[str]:
    yield f"profile: {profile.threads} thread{'s' if profile.threads != 1 else ''}"
    if profile.message:
        yield f"  {profile.message}"
    yield from _build(profile.build)
    for case in profile.cases:
        yield from _case(case)
    for source in profile.sources:
        yield f"  {'have' if source.have else 'lack'}  {source.name}: {source.detail}"
        if source.get:
            yield f"        get it: {source.get}"


def _case(case: CaseProfile) -> Iterator[str]:
    yield f"  {case.case}"
    for name, value in case.numbers.items():
        yield f"    {name.replace('_', ' '):<40} {value:.4g}"
    for line in case.lines:
        yield f"    line {line.line:<5} {line.share:>6.1%} of instructions, {line.misses} misses  {line.text}"


def _build(build: BuildNote) -> Iterator[str]:
    if not build.ok:
        yield from (f"  | {line}" for line in build.log.splitlines()[:20])
