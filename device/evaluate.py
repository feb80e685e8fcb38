"""One candidate, judged: build, run, compare, time, and a signed report of what was seen.

Each step has its own module and its own result type; what happens in which order is all here.
"""

from __future__ import annotations

import hashlib
import platform
import time
import uuid
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from device import __version__, machine, operators, oracle, report, timing
from device.backends import get as get_backend
from device.compare import CLASSES
from device.errors import UnknownMode
from device.measure import measure as measure_cases
from device.types import (
    Build,
    CaseMeasurement,
    Check,
    DeviceDescription,
    Failure,
    Limits,
    Measurement,
    Mode,
    Outcome,
    Ratio,
    RuleName,
    Verification,
)
from device.verify import verify

if TYPE_CHECKING:
    from device.operators.base import Operator
    from device.port import Backend
    from device.report import JudgeKey, SignedReport

RULE_OF: dict[Mode, RuleName] = {"hardened": "hardened", "paper": "npukernelbench"}


class Judge:
    """Evaluates candidates one after the other; keeps inputs and references for the next one."""

    def __init__(self, key: JudgeKey, masks: tuple[Path, ...] = ()) -> None:
        self._key, self._masks = key, masks
        self._oracle = oracle.Oracle()

    def evaluate(
        self,
        source: str,
        operator: Operator,
        *,
        backend: Backend,
        language: str = "cpp",
        mode: Mode = "hardened",
        rule: RuleName | None = None,
        seed: int,
        measure: bool = True,
        limits: Limits | None = None,
    ) -> SignedReport:
        """Judge one candidate; see `device.evaluate`."""
        if mode not in get_args(Mode):
            raise UnknownMode("mode", mode, get_args(Mode))
        if rule is not None and rule not in get_args(RuleName):
            raise UnknownMode("rule", rule, get_args(RuleName))
        rule = rule or RULE_OF[mode]
        limits = limits or Limits()
        threads = limits.threads or machine.cores()
        description = backend.describe()
        build = backend.build(source, language, limits, self._masks)
        begin = time.monotonic()
        verification: Verification | None = None
        measurement: Measurement | None = None
        if build.ok:
            private = self._key.private_seed(seed)
            suite = self._oracle.suite(operator, private, mode, rule)
            verification = verify(backend, build, suite, limits, threads, repeat=operator.deterministic)
            if verification.ok and measure:
                measurement = measure_cases(backend, build, operator, private, mode, rule, limits, threads)
        data = compose(
            description, operator=described(operator), source=source, language=language, mode=mode, rule=rule,
            seed=seed, build=build, verification=verification, measurement=measurement,
            device_seconds=time.monotonic() - begin if build.ok else 0.0,
        )  # fmt: skip
        return report.sign(data, self._key)


def described(operator: Operator) -> dict[str, Any]:
    """Put an operator into the report's words."""
    return {
        "name": operator.name,
        "level": operator.level,
        "family": operator.family,
        "dtype": operator.cases[0].inputs[0].dtype,
    }


def compose(
    description: DeviceDescription, *, operator: dict[str, Any], source: str, language: str, mode: Mode,
    rule: RuleName, seed: int, build: Build, verification: Verification | None, measurement: Measurement | None,
    device_seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Put everything that was seen of one candidate into the report's form."""
    return {
        "format": report.FORMAT,
        "id": str(uuid.uuid4()),
        "created": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "judge": {"name": "sagebook-device", "version": __version__, "mode": mode, "rule": rule},
        **_surroundings(description),
        "operator": operator,
        "candidate": {
            "language": language,
            "source_sha256": hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
            "artefact_sha256": build.artefact_sha256,
        },
        "seed": seed,
        **_verdict(build, verification, measurement),
        "costs": {"compile_seconds": build.seconds, "device_seconds": device_seconds},
    }


def evaluate(
    source: str,
    operator: str | Operator,
    *,
    device: str = "cpu",
    language: str = "cpp",
    mode: Mode = "hardened",
    rule: RuleName | None = None,
    seed: int,
    key: JudgeKey,
    measure: bool = True,
    limits: Limits | None = None,
) -> SignedReport:
    """Judge one candidate and return the signed report; the outcome is in the report, never an exception.

    `mode` chooses the protocol (`hardened`, or `paper`: the source's), `rule` the tolerance where it should not be the
    mode's own. Raises UnknownOperator, UnknownDevice, UnknownLanguage, UnknownMode, DeviceUnavailable,
    CompilerMissing, ReferenceUnavailable, InvalidOperator and SandboxBroken: none is a verdict on the candidate.
    """
    chosen = operators.get(operator) if isinstance(operator, str) else operator
    return _judge(key).evaluate(
        source, chosen, backend=get_backend(device), language=language, mode=mode, rule=rule, seed=seed,
        measure=measure, limits=limits,
    )  # fmt: skip


_judges: dict[bytes, Judge] = {}
"""One judge a key, so that references are worked out once in a process; nothing that a report depends on is in here."""


def _judge(key: JudgeKey) -> Judge:
    if key.public not in _judges:
        folder = report.default_key_path().parent
        _judges[key.public] = Judge(key, (folder,) if folder.is_dir() else ())
    return _judges[key.public]


def _surroundings(description: DeviceDescription) -> dict[str, Any]:
    environment: dict[str, str | None] = {
        "python": platform.python_version(),
        "torch": oracle.installed_torch(),
        "compiler": description.compiler,
        "os": machine.operating_system(),
        "toolkit": description.toolkit,
    }
    device = {
        "kind": description.kind,
        "name": description.name,
        "cores": description.cores,
        "features": list(description.features),
    }
    rest = {**environment, "device": f"{description.kind} {description.name} {' '.join(description.features)}"}
    return {"device": device, "environment": {"fingerprint": report.fingerprint(rest), **environment}}


def _verdict(build: Build, verification: Verification | None, measurement: Measurement | None) -> dict[str, Any]:
    """Put what the steps gave back into the report's words."""
    outcome, summary = _outcome(build, verification, measurement)
    failure = verification.failure if verification else None
    if measurement is not None and measurement.failure is not None:
        failure = measurement.failure
    return {
        "outcome": outcome,
        "summary": summary,
        "compile": {
            "ok": build.ok,
            "command": list(build.command),
            "seconds": build.seconds,
            "log": build.log,
            "cached": build.cached,
        },
        "verify": None if verification is None else _verify_section(build, verification, measurement, failure),
        "measure": _measure_section(measurement),
    }


def _outcome(build: Build, verification: Verification | None, measurement: Measurement | None) -> tuple[Outcome, str]:
    if build.outcome != "built":
        return build.outcome, build.summary
    assert verification is not None  # noqa: S101  (a built candidate was run)
    failure = verification.failure or (measurement.failure if measurement else None)
    if failure is not None:
        kind: Outcome = "wrong" if failure.kind in {"wrong", "error", "returned"} else failure.kind  # type: ignore[assignment]
        return kind, f"{failure.case}: {failure.message}"
    if measurement is None:
        return "correct", f"correct on {verification.cases} cases; not measured"
    if measurement.uneven is not None:
        why = f"torch against itself came out as {measurement.uneven}"
        return "correct", f"correct on {verification.cases} cases; not measured: {why}"
    latency, reference = _latencies(measurement)
    return "correct", (
        f"correct on {verification.cases} cases; {latency:.4g} ms against {reference:.4g} ms of torch, "
        f"{reference / latency:.3g} times as fast"
    )


def _latencies(measurement: Measurement) -> tuple[float, float]:
    return (
        timing.geometric([case.candidate.mean_ms for case in measurement.cases]),
        timing.geometric([case.reference.mean_ms for case in measurement.cases]),
    )


def _verify_section(
    build: Build, verification: Verification, measurement: Measurement | None, failure: Failure | None
) -> dict[str, Any]:
    checks: tuple[Check, ...] = (*build.checks, *verification.checks, *(measurement.checks if measurement else ()))
    return {
        "ok": failure is None,
        "cases": verification.cases,
        "passed": verification.passed,
        "seconds": verification.seconds,
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
        "errors": _errors(verification.errors),
        "failure": None if failure is None else _failure(failure),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    seen = failure.comparison
    return {
        "kind": failure.kind,
        "case": failure.case,
        "message": failure.message,
        "index": None if seen is None or seen.index is None else list(seen.index),
        "expected": None if seen is None else seen.expected,
        "got": None if seen is None else seen.got,
        "max_abs_error": None if seen is None else seen.max_abs_error,
        "max_rel_error": None if seen is None else seen.max_rel_error,
        "tile": None if seen is None or seen.tile is None else asdict(seen.tile),
        "errors": _errors(() if seen is None else seen.errors),
    }


def _errors(counts: tuple[int, ...]) -> dict[str, Any] | None:
    """Errors by class, in units of what is allowed; the last class has no upper end."""
    return {"upper": [*CLASSES[:-1], None], "elements": list(counts)} if counts else None


def _measure_section(measurement: Measurement | None) -> dict[str, Any] | None:
    if measurement is None or measurement.failure is not None or measurement.uneven is not None:
        return None
    latency, reference = _latencies(measurement)
    return {
        "cases": [_case_section(case) for case in measurement.cases],
        "latency_ms": latency,
        "reference_ms": reference,
        "noise_ms": timing.combined_noise_ms(measurement.cases),
        "speedup": reference / latency,
        "speedup_interval": _interval(timing.combined([case.speedup for case in measurement.cases])),
        "conditions": dict(zip(("before", "after"), map(asdict, measurement.conditions), strict=True)),
        "warm_up": measurement.warm_up,
        "timed": measurement.timed,
        "seconds": measurement.seconds,
    }


def _case_section(case: CaseMeasurement) -> dict[str, Any]:
    sides = {
        name: {
            "mean_ms": side.mean_ms,
            "median_ms": side.median_ms,
            "min_ms": side.min_ms,
            "std_ms": side.std_ms,
            "samples_ms": list(side.samples_ms),
        }
        for name, side in (("candidate", case.candidate), ("reference", case.reference))
    }
    return {
        "case": case.case,
        "shapes": [list(shape) for shape in case.shapes],
        **sides,
        "speedup": case.speedup.value,
        "speedup_interval": _interval(case.speedup),
        "noise_ms": case.noise_ms,
        "itself": {
            "ratio": case.itself.value,
            "interval": _interval(case.itself),
            "pairs": case.itself.pairs,
            "tries": case.tries,
        },
    }


def _interval(ratio: Ratio) -> list[float]:
    return [ratio.low, ratio.high]
