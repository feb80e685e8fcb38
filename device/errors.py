"""One root error of the device house, and a class for each thing that can happen. Facts are fields of the error."""

from __future__ import annotations

from collections.abc import Iterable


class DeviceError(Exception):
    """Anything that the device house refuses or fails at; the message names the thing and the way out."""


class UnknownOperator(DeviceError):  # noqa: N818  (the name is part of the public face)
    """No operator of that name is in the suite. `close` holds names that look alike."""

    def __init__(self, name: str, close: Iterable[str], known: int) -> None:
        self.name = name
        self.close = tuple(close)
        hint = f"did you mean {', '.join(self.close)}?" if self.close else "nothing looks like it."
        super().__init__(f"no operator is called {name!r}: {hint} `sagebook device operators` lists all {known}.")


class InvalidOperator(DeviceError):  # noqa: N818  (named like UnknownOperator, which is public)
    """A tensor specification, a case or an operator of the suite contradicts itself. `subject` says which."""

    def __init__(self, subject: str, problem: str) -> None:
        self.subject = subject
        self.problem = problem
        super().__init__(f"{subject}: {problem}")
