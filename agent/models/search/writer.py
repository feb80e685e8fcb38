"""Lines of C++ with their indentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; `block` writes a brace and indents what is written inside."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        """Write one line at the present indentation."""
        self._lines.append(f"{'  ' * self._depth}{text}" if text else "")

    def lines(self, texts: Iterable[str]) -> None:
        """Write several lines."""
        for text in texts:
            self.line(text)

    def text(self, text: str) -> None:
        """Write a piece of source as it stands, indented as a whole; blank lines around it are dropped."""
        self.lines(text.strip("\n").split("\n"))

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write `head {`, what the body writes, and `}`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line(tail)

    def __str__(self) -> str:
        return "\n".join(self._lines) + "\n"
