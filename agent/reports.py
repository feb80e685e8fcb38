"""Reading the judge's signed report (`sagebook.report/1`): what a person and a model are told of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from agent.port import Outcome, Verdict

_LOG_LIMIT = 6000


def verdict(report: str, signature: str, judge_key: str) -> Verdict:
    """The verdict in a report; a latency that was not measured is None."""
    data: dict[str, Any] = json.loads(report)
    measured = data.get("measure") or {}
    costs = data.get("costs") or {}
    return Verdict(
        outcome=cast("Outcome", data["outcome"]),
        summary=str(data["summary"]),
        evidence=evidence(data),
        report=report,
        signature=signature,
        judge_key=judge_key,
        latency_ms=_number(measured.get("latency_ms")),
        reference_ms=_number(measured.get("reference_ms")),
        noise_ms=_number(measured.get("noise_ms")),
        compile_seconds=_number(costs.get("compile_seconds")) or 0.0,
        device_seconds=_number(costs.get("device_seconds")) or 0.0,
    )


def evidence_in(report: str) -> str:
    """The evidence of a report as text, e.g. one that comes back from the ledger."""
    return evidence(json.loads(report))


def evidence(data: Mapping[str, Any]) -> str:
    """The part of a report that the next change starts from: compiler text, first bad element, or latencies."""
    if data["outcome"] == "compile_error":
        return _clip(str(data["compile"]["log"]))
    parts = []
    verify = data.get("verify") or {}
    if failure := verify.get("failure"):
        parts.append(_failure(failure))
    parts.extend(f"{check['name']}: {check['detail']}" for check in verify.get("checks", ()) if not check["ok"])
    parts.extend(_timing(case) for case in (data.get("measure") or {}).get("cases", ()))
    return _clip("\n".join(parts)) or str(data["summary"])


def _failure(failure: Mapping[str, Any]) -> str:
    where = f"case {failure.get('case')}" + (f", index {failure['index']}" if failure.get("index") is not None else "")
    numbers = [
        f"{label} {failure[name]}"
        for name, label in (
            ("expected", "expected"),
            ("got", "got"),
            ("max_abs_error", "max absolute error"),
            ("max_rel_error", "max relative error"),
        )
        if failure.get(name) is not None
    ]
    if tile := failure.get("tile"):
        axes = ", ".join(f"{low}:{high}" for low, high in zip(tile["start"], tile["stop"], strict=True))
        ends = f" at the end of axis {', '.join(map(str, tile['tail']))}" if tile["tail"] else ""
        numbers.append(f"wrong in [{axes}]{ends}")
    told = f"; {', '.join(numbers)}" if numbers else ""
    return f"{failure['kind']} at {where}: {failure['message']}{told}"


def _timing(case: Mapping[str, Any]) -> str:
    ours, theirs = case["candidate"], case["reference"]
    return (
        f"case {case['case']} {case['shapes']}: mean {_ms(ours['mean_ms'])}, min {_ms(ours['min_ms'])}, "
        f"spread {_ms(ours['std_ms'])}; reference {_ms(theirs['mean_ms'])}; speedup {_number(case['speedup']) or 0:.2f}"
    )


def _ms(value: object) -> str:
    number = _number(value)
    return "not measured" if number is None else f"{number:.4f} ms"


def _number(value: object) -> float | None:
    """A number of the report; the strings that stand for not-a-number and infinity measure nothing."""
    return float(value) if isinstance(value, int | float) else None


def _clip(text: str) -> str:
    if len(text) <= _LOG_LIMIT:
        return text
    half = _LOG_LIMIT // 2
    return f"{text[:half]}\n… {len(text) - _LOG_LIMIT} characters left out …\n{text[-half:]}"
