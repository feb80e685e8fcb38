"""The only place that calls the device house: kernels in, verdicts out."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agent import reports
from agent.errors import ConfigurationError, WorkbenchError
from agent.port import OperatorCard, Verdict

if TYPE_CHECKING:
    from device import JudgeKey
    from device.operators import Operator


@dataclass
class DeviceWorkbench:
    """Judges on one device in one mode."""

    device: str = "cpu"
    """`cpu`, or `npu` on an Ascend host."""
    mode: Literal["hardened", "paper"] = "hardened"
    """`hardened`, or `paper` for the source's protocol."""
    language: str = "cpp"
    judge_key: Path | None = None
    """File of the judge's signing key; None means the device's own default."""
    _key: JudgeKey | None = field(default=None, init=False, repr=False)

    def operators(self) -> tuple[str, ...]:
        """Names of the bundled operators, by level."""
        from device import operators  # noqa: PLC0415 - the device is loaded when it is first needed

        return tuple(operators.names())

    def card(self, operator: str) -> OperatorCard:
        """What an author is told: definition, visible cases, entry point. Hidden cases are not in it."""
        from device import languages, operators  # noqa: PLC0415

        found = self._operator(operator)
        header = Path(languages.__path__[0]) / "sagebook_kernel.h"
        return OperatorCard(
            name=found.name,
            level=found.level,
            family=found.family,
            summary=found.summary,
            reference=operators.reference_source(found),
            dtypes=tuple(found.dtypes),
            cases=tuple(case.line for case in found.cases if not case.hidden),
            attributes=tuple(found.attributes),
            abi=header.read_text(encoding="utf-8"),
            language=self.language,
        )

    def expert(self, operator: str) -> str | None:
        """Source text of the operator's expert kernel, or None."""
        return self._operator(operator).expert

    def environment(self) -> Mapping[str, str]:
        """Chip, toolkit, machine, Python and torch that the verdicts are made under; each report says it in full."""
        import device  # noqa: PLC0415
        from device.errors import DeviceError  # noqa: PLC0415

        try:
            told = device.environment(self.device)
        except DeviceError as error:
            raise WorkbenchError(str(error)) from error
        return {
            **told,
            "device": self.device,
            "machine": platform.machine(),
            "os": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "torch": _version("torch"),
            "cores": str(os.cpu_count() or 1),
        }

    def judge(self, source: str, operator: str, *, seed: int) -> Verdict:
        """Build, verify and time one candidate in the device's child process.

        Whatever the kernel does is a verdict. Raises WorkbenchError when the device itself can not work.
        """
        import device  # noqa: PLC0415
        from device.errors import DeviceError  # noqa: PLC0415

        try:
            if self._key is None:
                self._key = device.load_judge_key(self.judge_key)
            signed = device.evaluate(
                source,
                operator,
                device=self.device,
                language=self.language,
                mode=self.mode,
                seed=seed,
                key=self._key,
            )
        except DeviceError as error:
            raise WorkbenchError(f"{error} (`sagebook device doctor` says what this machine has and lacks)") from error
        return reports.verdict(signed.report, signed.signature, signed.judge_key)

    @staticmethod
    def _operator(name: str) -> Operator:
        from device import operators  # noqa: PLC0415
        from device.errors import DeviceError  # noqa: PLC0415

        try:
            return operators.get(name)
        except DeviceError as error:
            raise ConfigurationError(str(error)) from error


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"
