"""A judge's signed report, read into facts. The ledger takes a score's facts from here and from nowhere else."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger import wire
from ledger.domain import events as ev
from ledger.errors import ReportInvalidError

FORMAT = "sagebook.report/1"
"""Also the first line of the signed bytes, so that a signature made for something else never passes here."""

Outcome = Literal["compile_error", "refused", "crash", "hang", "resource", "wrong", "correct"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Judge(_Part):
    mode: str
    rule: str


class _Device(_Part):
    kind: str
    name: str = ""


class _Operator(_Part):
    name: str


class _Subject(_Part):
    source_sha256: str
    artefact_sha256: str | None = None


class _Compile(_Part):
    ok: bool
    seconds: float = Field(ge=0, le=1e9, allow_inf_nan=False)


class _Verify(_Part):
    ok: bool


class _Measure(_Part):
    latency_ms: float = Field(gt=0, allow_inf_nan=False)
    reference_ms: float = Field(gt=0, allow_inf_nan=False)
    noise_ms: float = Field(ge=0, allow_inf_nan=False)


class _Report(_Part):
    format: Literal["sagebook.report/1"]
    judge: _Judge
    device: _Device
    operator: _Operator
    candidate: _Subject
    outcome: Outcome
    summary: str = ""
    compile: _Compile
    verify: _Verify | None = None
    measure: _Measure | None = None


def blob_of(given: wire.Report) -> bytes:
    """The bytes that are kept for the report."""
    return given.report.encode()


def _check_signature(given: wire.Report) -> None:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only a service that takes reports needs it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(given.judge_key, validate=True))
        signature = base64.b64decode(given.signature, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ReportInvalidError(
            f"the report's judge_key or signature is not a base64 Ed25519 value: {error}"
        ) from None
    try:
        key.verify(signature, FORMAT.encode() + b"\n" + given.report.encode())
    except InvalidSignature:
        raise ReportInvalidError(
            "the report's signature does not match its text and judge_key; hand in the judge's bytes unchanged"
        ) from None


def facts(given: wire.Report, *, stage: str, candidate: str, source: str, operator: str) -> list[ev.Event]:
    """The events that a report amounts to. `source` is the candidate's blob, `operator` the stage's.

    Raises ReportInvalidError where the signature, the form or the subject does not hold.
    """
    _check_signature(given)
    try:
        report = _Report.model_validate_json(given.report)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ReportInvalidError(f"the report's field {where!r} does not hold: {first['msg']}") from None
    if report.candidate.source_sha256 != source:
        raise ReportInvalidError(
            f"the report is on source {report.candidate.source_sha256}, candidate {candidate!r} has source {source}"
        )
    if report.operator.name != operator:
        raise ReportInvalidError(f"the report is on operator {report.operator.name!r}, the stage is on {operator!r}")
    if report.outcome == "compile_error" and report.compile.ok:
        raise ReportInvalidError("the report says `compile_error` of a build that passed")
    if report.outcome == "correct" and not (report.compile.ok and report.verify is not None and report.verify.ok):
        raise ReportInvalidError("the report says `correct` without a build and a verification that passed")
    blob = hashlib.sha256(blob_of(given)).hexdigest()
    events: list[ev.Event] = [
        ev.CandidateCompiled(
            stage=stage,
            candidate=candidate,
            ok=report.compile.ok,
            seconds=report.compile.seconds,
            report=blob,
            judge=given.judge_key,
            summary=report.summary if report.outcome == "compile_error" else "",
            artefact=report.candidate.artefact_sha256,
            signature=given.signature,
        )
    ]
    if report.outcome == "compile_error":
        return events
    events.append(
        ev.CandidateVerified(
            stage=stage,
            candidate=candidate,
            ok=report.outcome == "correct",
            outcome=report.outcome,
            summary=report.summary,
            report=blob,
            judge=given.judge_key,
            mode=report.judge.mode,
            rule=report.judge.rule,
        )
    )
    if report.outcome == "correct" and report.measure is not None:
        measure = report.measure
        events.append(
            ev.CandidateMeasured(
                stage=stage,
                candidate=candidate,
                latency_ms=measure.latency_ms,
                reference_ms=measure.reference_ms,
                noise_ms=measure.noise_ms,
                device=f"{report.device.kind}: {report.device.name}" if report.device.name else report.device.kind,
                report=blob,
                judge=given.judge_key,
            )
        )
    return events
