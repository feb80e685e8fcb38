"""A judge of the tests' own: it signs real reports, so that the ledger reads them as it reads the device's."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger import wire

FORMAT = "sagebook.report/1"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Judge:
    """One Ed25519 key, and reports under it."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public = _base64(self._key.public_key().public_bytes_raw())

    def sign(self, text: str) -> wire.Report:
        """Any text under the judge's signature."""
        signature = self._key.sign(f"{FORMAT}\n".encode() + text.encode())
        return wire.Report(report=text, signature=_base64(signature), judge_key=self.public)

    def report(
        self,
        source: str,
        operator: str,
        outcome: str = "correct",
        *,
        ms: float | None = None,
        noise: float = 0.0,
        **changes: Any,
    ) -> wire.Report:
        """A report on a source text, measured at `ms` if it is given; `changes` replace whole fields."""
        built = outcome != "compile_error"
        correct = outcome == "correct"
        timing = {"mean_ms": ms, "median_ms": ms, "min_ms": ms, "std_ms": 0.0, "samples_ms": [ms]}
        conditions = {"load": 0.5, "mhz": [2600.0, 2600.0, 2600.0], "governor": None}
        facts: dict[str, Any] = {
            "format": FORMAT,
            "id": str(uuid.uuid4()),
            "created": "2026-01-02T03:04:05Z",
            "judge": {"name": "sagebook-device", "version": "0", "mode": "hardened", "rule": "hardened"},
            "device": {"kind": "cpu", "name": "Test CPU", "cores": 2, "features": ["avx2"]},
            "environment": {
                "fingerprint": "0" * 64,
                "python": "3",
                "torch": "2",
                "compiler": "g++",
                "os": "linux",
                "toolkit": "",
            },
            "operator": {"name": operator, "level": 1, "family": "elementwise", "dtype": "float32"},
            "candidate": {
                "language": "cpp",
                "source_sha256": hashlib.sha256(source.encode()).hexdigest(),
                "artefact_sha256": "a" * 64 if built else None,
            },
            "seed": 7,
            "outcome": outcome,
            "summary": f"{operator}: {outcome}",
            "compile": {"ok": built, "command": ["g++"], "seconds": 0.5, "log": "", "cached": False},
            "verify": {
                "ok": correct, "cases": 4, "passed": 4 if correct else 3, "seconds": 0.1, "checks": [], "errors": None,
                "failure": None,
            }
            if built
            else None,
            "measure": None
            if ms is None
            else {
                "cases": [{
                    "case": "a", "shapes": [[4]], "candidate": timing, "reference": timing, "speedup": 1.0,
                    "speedup_interval": [0.9, 1.1], "noise_ms": noise,
                    "itself": {"ratio": 1.0, "interval": [0.9, 1.1], "pairs": 50, "tries": 1},
                }],
                "latency_ms": ms,
                "reference_ms": 2.0,
                "noise_ms": noise,
                "speedup": 2.0 / ms,
                "speedup_interval": [1.9 / ms, 2.1 / ms],
                "conditions": {"before": conditions, "after": conditions},
                "warm_up": 5,
                "timed": 100,
                "seconds": 0.2,
            },
            "costs": {"compile_seconds": 0.5, "device_seconds": 0.3},
        }  # fmt: skip
        return self.sign(json.dumps(facts | changes))
