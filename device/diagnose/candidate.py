"""The face of the diagnosis: one candidate in, everything that the chosen tools found out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device import machine, operators, oracle, report
from device.backends import get as get_backend
from device.diagnose import dump as dumping
from device.diagnose import profile as profiling
from device.diagnose import sanitize as sanitizing
from device.diagnose.types import Diagnosis, Finding
from device.errors import NotDiagnosable
from device.types import Limits

if TYPE_CHECKING:
    from device.operators.base import Operator
    from device.report import JudgeKey

TOOLS = ("dump", "sanitize", "profile")

LIMITS = Limits(call_seconds=20.0, total_seconds=60.0)
"""An instrumented kernel is ten times as slow as the one that is judged, and more."""


def diagnose_candidate(
    source: str,
    operator: str | Operator,
    *,
    tools: Sequence[str] = TOOLS,
    seed: int,
    key: JudgeKey,
    device: str = "cpu",
    language: str = "cpp",
    limits: Limits | None = None,
) -> Diagnosis:
    """Find out what is wrong with a candidate, or slow about it; whatever it does is in the result.

    `tools` are some of "dump", "sanitize" and "profile". Seed and key are those of the evaluation that is to be
    explained: the problems are then the same. Nothing here changes what the judge builds, keeps, or says.

    Raises UnknownOperator, UnknownDevice, NotDiagnosable, CompilerMissing, ReferenceUnavailable, InvalidOperator and
    SandboxBroken.
    """
    chosen = operators.get(operator) if isinstance(operator, str) else operator
    backend = get_backend(device)
    if backend.kind != "cpu":
        raise NotDiagnosable("device", device, ("cpu",))
    if language != "cpp":
        raise NotDiagnosable("language", language, ("cpp",))
    for tool in tools:
        if tool not in TOOLS:
            raise NotDiagnosable("tool", tool, TOOLS)
    allowed = limits or LIMITS
    threads = allowed.threads or machine.cores()
    described = backend.describe()
    folder = report.default_key_path().parent
    masks: tuple[Path, ...] = (folder,) if folder.is_dir() else ()
    found: list[Finding] = []
    parts: dict[str, Any] = {}
    if "dump" in tools or "sanitize" in tools:
        suite = oracle.Oracle().suite(chosen, key.private_seed(seed), "hardened", "hardened")
    if "dump" in tools:
        parts["dump"], more = dumping.dump(source, chosen, suite, allowed, threads, masks)
        found += more
    if "sanitize" in tools:
        parts["sanitize"], more = sanitizing.sanitize(source, suite, allowed, threads, masks)
        found += more
    if "profile" in tools:
        parts["profile"], more = profiling.profile(source, chosen, key.private_seed(seed), allowed, threads, masks)
        found += more
    return Diagnosis(
        created=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        operator=chosen.name,
        language=language,
        source_sha256=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        seed=seed,
        device=described.name,
        compiler=described.compiler,
        findings=tuple(found),
        **parts,
    )
