"""Vectors that cost next to nothing, the same on both sides, so that a comparison is one of the stores.

A signed feature hash: each word adds 1 or -1 to one of 384 places; the vector gets length 1 (Weinberger et al. 2009).
Standard library only: a peer's environment has nothing else.
"""

from __future__ import annotations

import hashlib
import math

DIMENSIONS = 384


def vector(text: str) -> list[float]:
    """384 numbers of length 1, all 0 for a text without words."""
    row = [0.0] * DIMENSIONS
    for word in text.lower().split():
        number = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        row[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    length = math.sqrt(sum(value * value for value in row)) or 1.0
    return [value / length for value in row]
