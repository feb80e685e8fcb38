"""Counting tokens offline, by a tokenizer with a name. The name goes into the ledger beside the number."""

from __future__ import annotations

from typing import Protocol

DEFAULT = "o200k_base"
_BYTES_PER_TOKEN = 4


class TokenCounter(Protocol):
    """Counts the tokens of a text; the same name means the same count for ever."""

    @property
    def name(self) -> str:
        """What the ledger records as the tokenizer."""
        ...

    @property
    def approx(self) -> bool:
        """True where no tokenizer was used and the number is an estimate."""
        ...

    def count(self, text: str) -> int:
        """Tokens of `text`; at least 1, so that a rule always has a length to be divided by."""
        ...


class BundledTokens:
    """A byte-pair encoding that the `quicktok-v1` package carries with it: exact, and no network."""

    approx = False

    def __init__(self, encoding: str = DEFAULT) -> None:
        """Load the encoding. Raises ImportError without the package, ValueError for an unknown encoding."""
        import quicktok  # noqa: PLC0415 - 0.1 s and a native library, only where tokens are counted

        self.name = encoding
        self._encoding = quicktok.get_encoding(encoding)

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens read as plain text; at least 1."""
        return max(1, int(self._encoding.count(text)))


class ByteTokens:
    """One token for four bytes of UTF-8, rounded up: deterministic, needs nothing, and says that it is an estimate."""

    name = f"bytes/{_BYTES_PER_TOKEN} (approx)"
    approx = True

    def count(self, text: str) -> int:
        """A quarter of the UTF-8 bytes, rounded up; at least 1."""
        return max(1, -(-len(text.encode()) // _BYTES_PER_TOKEN))


def counter(encoding: str = DEFAULT) -> TokenCounter:
    """Return the tokenizer of that name, or the byte estimate where the package is not installed."""
    try:
        return BundledTokens(encoding)
    except ImportError:
        return ByteTokens()
