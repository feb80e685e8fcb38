"""A workbench for tests of the loop: it judges by what the source says, and signs its reports as the device does.

A source is one line: `compile_error`, `crash`, `hang`, `wrong` or `correct 0.50` (milliseconds). Where the real device is
what is tested, the real device is used; here the order of the steps is.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agent import reports
from agent.errors import ConfigurationError
from agent.port import Decision, OperatorCard, Proposal, Verdict

REFERENCE_MS = 1.0
CARDS = {
    name: OperatorCard(
        name=name,
        level=level,
        family=family,
        summary=f"{name} over rows",
        reference=f"def {name}(x): ...",
        dtypes=("float32",),
        cases=("small: float32[4, 8] (timed)",),
        attributes=(),
        abi="int sagebook_kernel(...);",
    )
    for name, level, family in (
        ("gelu", 1, "elementwise"),
        ("add", 1, "elementwise"),
        ("softmax", 2, "reduction"),
        ("matmul", 3, "matmul"),
    )
}


@dataclass
class StandIn:
    """Signs with a key of its own. `before` is called before each verdict, e.g. to raise."""

    before: Callable[[str], None] | None = None
    experts: Mapping[str, str] = field(default_factory=dict)
    judged: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(b"k" * 32)

    def operators(self) -> tuple[str, ...]:
        return tuple(CARDS)

    def card(self, operator: str) -> OperatorCard:
        if operator not in CARDS:
            raise ConfigurationError(f"no operator is named {operator!r}")
        return CARDS[operator]

    def expert(self, operator: str) -> str | None:
        return self.experts.get(operator)

    def environment(self) -> Mapping[str, str]:
        return {"device": "stand-in"}

    def judge(self, source: str, operator: str, *, seed: int) -> Verdict:
        if self.before is not None:
            self.before(source)
        self.judged.append(source)
        self.seeds.append(seed)
        report = json.dumps(report_on(source, operator, seed))
        signature = self._key.sign(b"sagebook.report/1\n" + report.encode())
        public = self._key.public_key().public_bytes_raw()
        return reports.verdict(report, base64.b64encode(signature).decode(), base64.b64encode(public).decode())


def report_on(source: str, operator: str, seed: int) -> dict[str, Any]:
    """The report of a source in the form of `sagebook.report/1`."""
    outcome, _, rest = source.split("\n", 1)[0].partition(" ")
    correct = outcome == "correct"
    latency = float(rest.split()[0]) if correct else 0.0
    times = {"mean_ms": latency, "median_ms": latency, "min_ms": latency, "std_ms": 0.0, "samples_ms": [latency]}
    reference = dict.fromkeys(("mean_ms", "median_ms", "min_ms"), REFERENCE_MS) | {"std_ms": 0.0, "samples_ms": [1.0]}
    failure = {
        "kind": outcome,
        "case": "small",
        "message": f"the stand-in says {outcome}",
        "index": [0, 3],
        "expected": 1.0,
        "got": "NaN",
        "max_abs_error": None,
        "max_rel_error": None,
        "tile": {"start": [0, 3], "stop": [4, 8], "wrong": 20, "tail": [1]},
        "errors": None,
    }
    return {
        "format": "sagebook.report/1",
        "id": "00000000-0000-0000-0000-000000000000",
        "created": "2026-12-01T00:00:00Z",
        "judge": {"name": "stand-in", "version": "0", "mode": "hardened", "rule": "hardened"},
        "device": {"kind": "cpu", "name": "stand-in", "cores": 2, "features": []},
        "environment": {
            "fingerprint": "0" * 64,
            "python": "3",
            "torch": None,
            "compiler": None,
            "os": "none",
            "toolkit": None,
        },
        "operator": {"name": operator, "level": 1, "family": "elementwise", "dtype": "float32"},
        "candidate": {
            "language": "cpp",
            "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
            "artefact_sha256": None,
        },
        "seed": seed,
        "outcome": outcome,
        "summary": f"{outcome} on {operator}",
        "compile": {
            "ok": outcome != "compile_error",
            "command": ["g++"],
            "seconds": 0.5,
            "log": "kernel.cpp:3: error: expected ';'" if outcome == "compile_error" else "",
            "cached": False,
        },
        "verify": None
        if outcome == "compile_error"
        else {
            "ok": correct,
            "cases": 1,
            "passed": int(correct),
            "seconds": 0.1,
            "checks": [],
            "errors": None,
            "failure": None if correct else failure,
        },
        "measure": {
            "cases": [
                {
                    "case": "small",
                    "shapes": [[4, 8]],
                    "candidate": times,
                    "reference": reference,
                    "speedup": REFERENCE_MS / latency,
                    "speedup_interval": [0.9 * REFERENCE_MS / latency, 1.1 * REFERENCE_MS / latency],
                    "noise_ms": 0.001,
                    "itself": {"ratio": 1.0, "interval": [0.9, 1.1], "pairs": 50, "tries": 1},
                }
            ],
            "latency_ms": latency,
            "reference_ms": REFERENCE_MS,
            "noise_ms": 0.001,
            "speedup": REFERENCE_MS / latency,
            "speedup_interval": [0.9 * REFERENCE_MS / latency, 1.1 * REFERENCE_MS / latency],
            "conditions": {key: {"load": 0.5, "mhz": None, "governor": None} for key in ("before", "after")},
            "warm_up": 5,
            "timed": 100,
            "seconds": 0.2,
        }
        if correct
        else None,
        "costs": {"compile_seconds": 0.5, "device_seconds": 0.25 if outcome != "compile_error" else 0.0},
    }


def answer(
    source: str | None, *, change: str = "x = 1", adopt: tuple[str, ...] = (), query: str | None = None
) -> Proposal:
    """One answer of a script."""
    return Proposal(
        source=source,
        change=change,
        hypothesis="it should help",
        decisions=tuple(Decision(name, adopted=True, reason=f"made {change} for it") for name in adopt),
        query=query,
    )
