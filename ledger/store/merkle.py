"""The Merkle tree of RFC 6962 over the hashes of a library's records: roots, inclusion and consistency proofs.

A leaf is SHA-256(0x00 || record hash), a node SHA-256(0x01 || left || right). What is kept in memory are the roots of
whole blocks of 256 leaves and all nodes above, 64 bytes for 256 records; the nodes inside a block are made again from
the stored hashes when a proof needs them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

EMPTY_ROOT: Final = hashlib.sha256().digest()
BLOCK: Final = 256
_LEVEL = 8
_KEPT_BLOCKS = 64

Hashes = Callable[[int, int], Sequence[bytes]]
"""(after, until) -> hashes of the records with after < sequence <= until."""


def leaf_hash(data: bytes) -> bytes:
    """Hash of a leaf (RFC 6962, 2.1)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node (RFC 6962, 2.1)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def _above(level: Sequence[bytes]) -> list[bytes]:
    sha = hashlib.sha256
    return [sha(b"\x01" + level[i] + level[i + 1]).digest() for i in range(0, len(level) - 1, 2)]


def _split(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1


class Tree:
    """A tree that grows at its end. Leaves are counted from 0, so sequence s is leaf s - 1."""

    def __init__(self, hashes: Hashes, blocks: bytes = b"") -> None:
        """`blocks`: what `blocks` gave of an earlier tree over the same records."""
        self._hashes = hashes
        self._levels: list[bytearray] = []
        self._tail: list[bytes] = []
        self._inside: OrderedDict[int, list[list[bytes]]] = OrderedDict()
        for start in range(0, len(blocks), 32):
            self._push(0, blocks[start : start + 32])
        self.size = len(blocks) // 32 * BLOCK

    @property
    def blocks(self) -> bytes:
        """Roots of the whole blocks, 32 bytes each."""
        return bytes(self._levels[0]) if self._levels else b""

    def extend(self, hashes: Iterable[bytes]) -> None:
        """Append the records with these hashes."""
        tail, sha = self._tail, hashlib.sha256
        for data in hashes:
            tail.append(sha(b"\x00" + data).digest())
            if len(tail) == BLOCK:
                level = tail
                while len(level) > 1:
                    level = _above(level)
                self._push(0, level[0])
                tail.clear()
        whole = len(self._levels[0]) // 32 if self._levels else 0
        self.size = whole * BLOCK + len(tail)

    def root(self, size: int | None = None) -> bytes:
        """Hash of the tree of the first `size` leaves, 32 bytes."""
        size = self.size if size is None else size
        return EMPTY_ROOT if size == 0 else self._range(0, size)

    def inclusion(self, index: int, size: int) -> list[bytes]:
        """Audit path of leaf `index` in the tree of the first `size` leaves (RFC 6962, 2.1.1)."""
        low, high = 0, size
        path = []
        while high - low > 1:
            middle = low + _split(high - low)
            if index < middle:
                path.append(self._range(middle, high))
                high = middle
            else:
                path.append(self._range(low, middle))
                low = middle
        return path[::-1]

    def consistency(self, first: int, second: int) -> list[bytes]:
        """Proof that the first `first` leaves begin the first `second`, 0 < first <= second (RFC 6962, 2.1.2)."""
        low, high, whole = 0, second, True
        proof = []
        while first != high:
            middle = low + _split(high - low)
            if first <= middle:
                proof.append(self._range(middle, high))
                high = middle
            else:
                proof.append(self._range(low, middle))
                low, whole = middle, False
        if not whole:
            proof.append(self._range(low, high))
        return proof[::-1]

    def _push(self, level: int, root: bytes) -> None:
        while True:
            if level == len(self._levels):
                self._levels.append(bytearray())
            row = self._levels[level]
            row += root
            if len(row) % 64:
                return
            root = node_hash(bytes(row[-64:-32]), bytes(row[-32:]))
            level += 1

    def _range(self, low: int, high: int) -> bytes:
        """Hash of the leaves low <= i < high; `low` is a multiple of the power of two at or above their number."""
        size = high - low
        if size & (size - 1) == 0:
            return self._whole(size.bit_length() - 1, low)
        middle = low + _split(size)
        return node_hash(self._range(low, middle), self._range(middle, high))

    def _whole(self, level: int, low: int) -> bytes:
        if level >= _LEVEL:
            start = (low >> level) * 32
            return bytes(self._levels[level - _LEVEL][start : start + 32])
        block = low // BLOCK
        if block * BLOCK == self.size - len(self._tail):
            inside = _levels_of(self._tail)
        else:
            kept = self._inside.get(block)
            if kept is None:
                leaves = [leaf_hash(item) for item in self._hashes(block * BLOCK, (block + 1) * BLOCK)]
                kept = self._inside[block] = _levels_of(leaves)
                if len(self._inside) > _KEPT_BLOCKS:
                    self._inside.popitem(last=False)
            inside = kept
        return inside[level][low % BLOCK >> level]


def _levels_of(leaves: list[bytes]) -> list[list[bytes]]:
    levels = [leaves]
    while len(levels[-1]) > 1:
        levels.append(_above(levels[-1]))
    return levels


def includes(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether the path shows `leaf` at `index` in the tree of `size` leaves with this root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    position, last, found = index, size - 1, leaf
    for item in path:
        if last == 0:
            return False
        if position & 1 or position == last:
            found = node_hash(item, found)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            found = node_hash(found, item)
        position, last = position >> 1, last >> 1
    return last == 0 and found == root


def extends(first: int, second: int, path: Sequence[bytes], old: bytes, new: bytes) -> bool:
    """Whether the path shows that the tree of `second` leaves begins with that of `first` (RFC 9162, 2.1.4.2)."""
    if first == 0 or first > second:
        return first == 0 and not path and old == EMPTY_ROOT
    if first == second:
        return not path and old == new
    items = [old, *path] if first & (first - 1) == 0 else list(path)
    if not items:
        return False
    position, last = first - 1, second - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    before = after = items[0]
    for item in items[1:]:
        if last == 0:
            return False
        if position & 1 or position == last:
            before, after = node_hash(item, before), node_hash(item, after)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            after = node_hash(after, item)
        position, last = position >> 1, last >> 1
    return last == 0 and before == old and after == new
