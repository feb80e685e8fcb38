"""Builds, runs, judges and measures one kernel, and signs what it saw.

The public face is small and loads nothing until it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device.diagnose.candidate import diagnose_candidate
    from device.diagnose.types import Diagnosis
    from device.environment import environment
    from device.evaluate import evaluate
    from device.report import JudgeKey, SignedReport, load_judge_key, verify_report
    from device.types import Limits

__version__ = "0.1.0"
__all__ = [
    "Diagnosis",
    "JudgeKey",
    "Limits",
    "SignedReport",
    "__version__",
    "diagnose_candidate",
    "environment",
    "evaluate",
    "load_judge_key",
    "verify_report",
]

_WHERE = {
    "Diagnosis": "device.diagnose.types",
    "JudgeKey": "device.report",
    "Limits": "device.types",
    "SignedReport": "device.report",
    "diagnose_candidate": "device.diagnose.candidate",
    "environment": "device.environment",
    "evaluate": "device.evaluate",
    "load_judge_key": "device.report",
    "verify_report": "device.report",
}


def __getattr__(name: str) -> Any:
    """Load a public name where it lives."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value
