"""Signed checkpoints of a library, proofs against them, and the verification of a log by itself and by them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec

from ledger import errors
from ledger.store import chain, checkpoint, merkle
from ledger.store.checkpoint import Checkpoint, LogKey
from ledger.store.log import Log, Stored
from ledger.store.shelf import Snapshot

_KIND = "tree"
_PAGE = 20_000
_WORTH_KEEPING = 64 * merkle.BLOCK
"""Records that a kept tree must be ahead of the last one kept."""


class SignedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint with the note that bears its signature, and the key to check it with."""

    size: int
    root: bytes
    note: str
    key: str


class Inclusion(msgspec.Struct, frozen=True):
    """That the tree of `size` records has this one, by its audit path."""

    sequence: int
    size: int
    record: bytes
    previous: bytes
    """Hash of the record before it."""
    hash: bytes
    path: list[bytes]


class Proofs:
    """Over one log. Safe to share between threads."""

    def __init__(self, log: Log, key: Callable[[], LogKey]) -> None:
        self._log = log
        self._read_key = key
        self._key: LogKey | None = None
        self._trees: dict[str, merkle.Tree] = {}
        self._kept: dict[str, int] = {}
        self._mutex = threading.RLock()

    def key(self, library: str) -> str:
        """The library's public key as verifier text."""
        return self._signer().verifier(library)

    def checkpoint(self, library: str) -> SignedCheckpoint:
        """Sign the library as it is.

        Raises UnknownLibraryError; HistoryRewrittenError where the log does not begin with what was signed before.
        """
        with self._mutex:
            signer = self._signer()
            tree = self._tree(library)
            last = self._last_signed(library)
            if last is not None and not _begins_with(tree, last):
                # The kept tree may be what was changed; the records decide.
                self.forget(library)
                tree = self._tree(library)
                if not _begins_with(tree, last):
                    raise errors.HistoryRewrittenError(
                        library,
                        min(last.size, tree.size + 1),
                        f"a checkpoint of {last.size} records was signed, and the log no longer begins with these; "
                        "`sagebook verify` finds where",
                    )
            size, root = tree.size, tree.root()
            note = signer.sign(library, size, root)
            if last is None or last.size != size:
                self._keep(lambda: self._log.shelf.put_checkpoint(library, size, note))
            return SignedCheckpoint(size, root, note, signer.verifier(library))

    def inclusion(self, library: str, sequence: int, size: int | None = None) -> Inclusion:
        """Prove that a record is in the tree of the first `size` (default: all). Raises InvalidInputError outside."""
        with self._mutex:
            tree = self._tree(library)
            size = tree.size if size is None else size
            if not 1 <= sequence <= size <= tree.size:
                raise errors.InvalidInputError(
                    f"there is no record {sequence} among the first {size}; library {library!r} has {tree.size}",
                    library=library,
                )
            rows = list(self._log.read(library, after=max(sequence - 2, 0), until=sequence))
            previous = rows[0].hash if len(rows) > 1 else bytes(32)
            row = rows[-1]
            return Inclusion(sequence, size, row.record, previous, row.hash, tree.inclusion(sequence - 1, size))

    def consistency(self, library: str, first: int, second: int | None = None) -> tuple[int, list[bytes]]:
        """Prove that the first `first` records begin the first `second` (default: all). Gives `second` and the path."""
        with self._mutex:
            tree = self._tree(library)
            second = tree.size if second is None else second
            if not 1 <= first <= second <= tree.size:
                raise errors.InvalidInputError(
                    f"sizes {first} and {second} are no two that rise within library {library!r}, "
                    f"which has {tree.size} records",
                    library=library,
                )
            return second, tree.consistency(first, second)

    def verify(self, library: str, notes: Iterable[str] = (), key: str | None = None) -> chain.Verdict:
        """Check every record against the chain, and the tree against every checkpoint that was signed or is given.

        `key` checks the given ones, by default this ledger's own. The verdict names the first place that does not hold;
        where records were exchanged and the chain made anew, the first behind the last checkpoint that holds.
        Raises CheckpointInvalidError for a note that the key did not sign, UnknownLibraryError.
        """
        signed = dict(self._signed(library))
        for note in notes:
            found = checkpoint.opened(note, key or self.key(library))
            signed[found.size] = found
        empty = self._log.head(library).sequence == 0 and not any(True for _ in self._log.read(library, limit=1))
        if empty and not signed:
            raise errors.UnknownLibraryError(library, self._log.libraries())
        walk = _Walk(self._log, library)
        for size in sorted(signed):
            if not walk.to(size, signed[size].root):
                break
        return walk.finish()

    def forget(self, library: str) -> None:
        """Drop the tree, in memory and kept."""
        with self._mutex:
            self._trees.pop(library, None)
            self._kept.pop(library, None)
            self._keep(lambda: self._log.shelf.drop_snapshots(library, _KIND))

    def _signer(self) -> LogKey:
        if self._key is None:
            self._key = self._read_key()
        return self._key

    def _signed(self, library: str) -> Iterator[tuple[int, Checkpoint]]:
        notes = self._log.shelf.checkpoints(library)
        # A ledger that never signed needs no key to verify.
        key = self.key(library) if notes else ""
        for size, note in notes:
            try:
                found = checkpoint.opened(note, key)
            except errors.CheckpointInvalidError:
                # Of a key that this ledger no longer has, or not of any.
                continue
            if found.size == size:
                yield size, found

    def _last_signed(self, library: str) -> Checkpoint | None:
        return max((found for _, found in self._signed(library)), key=lambda found: found.size, default=None)

    def _tree(self, library: str) -> merkle.Tree:
        head = self._log.head(library)
        if head.sequence == 0:
            raise errors.UnknownLibraryError(library, self._log.libraries())
        tree = self._trees.get(library)
        if tree is None or tree.size > head.sequence:
            tree = self._trees[library] = self._restored(library, head.sequence)
        while tree.size < head.sequence:
            tree.extend(self._log.hashes(library, after=tree.size, until=min(tree.size + _PAGE, head.sequence)))
        whole = tree.size // merkle.BLOCK * merkle.BLOCK
        if whole >= self._kept.get(library, 0) + _WORTH_KEEPING:
            self._kept[library] = whole
            (hash_,) = self._log.hashes(library, after=whole - 1, until=whole)
            self._keep(lambda: self._log.shelf.drop_snapshots(library, _KIND))
            self._keep(lambda: self._log.shelf.put_snapshot(library, _KIND, Snapshot(whole, hash_, tree.blocks)))
        return tree

    def _restored(self, library: str, head: int) -> merkle.Tree:
        def hashes(after: int, until: int) -> list[bytes]:
            return self._log.hashes(library, after=after, until=until)

        kept = self._log.shelf.snapshot(library, _KIND, until=head)
        if kept is not None and hashes(kept.sequence - 1, kept.sequence) == [kept.hash]:
            self._kept[library] = kept.sequence
            return merkle.Tree(hashes, kept.data)
        self._kept[library] = 0
        return merkle.Tree(hashes)

    @staticmethod
    def _keep(store: Callable[[], None]) -> None:
        try:
            store()
        except (errors.WriterHeldError, errors.StoreUnavailableError):
            # Kept for the next start's sake; beside a service that writes, this process does without.
            return


def _begins_with(tree: merkle.Tree, signed: Checkpoint) -> bool:
    return signed.size <= tree.size and tree.root(signed.size) == signed.root


class _Walk:
    """A verifier and the tree of what it has seen."""

    def __init__(self, log: Log, library: str) -> None:
        self._log = log
        self._library = library
        self._verifier = chain.Verifier(library)
        self._tree = merkle.Tree(lambda _after, _until: [])
        self._held = 0

    def to(self, size: int, root: bytes) -> bool:
        """Walk to `size` and compare. False: something does not hold, and going on shows nothing more."""
        verifier = self._verifier
        if not self._step(size):
            return False
        if verifier.events < size:
            verifier.condemn(verifier.events + 1, f"missing: a checkpoint of {size} records was signed")
            return False
        if self._tree.root() != root:
            verifier.condemn(
                self._held + 1,
                f"rewritten: records {self._held + 1} to {size} hold together, but are not those that "
                f"the checkpoint of {size} records was signed for",
            )
            return False
        self._held = size
        return True

    def finish(self) -> chain.Verdict:
        """Walk to the end, where nothing is bad yet, and compare with the head."""
        sound = self._step(None)
        head = self._log.head(self._library)
        if sound and head.sequence > self._verifier.events:
            self._step(head.sequence)
        return self._verifier.finish(head)

    def _step(self, until: int | None) -> bool:
        if self._verifier.bad:
            return False
        after = self._verifier.events or chain.BEFORE_ALL
        return self._verifier.walk(self._tapped(self._log.read(self._library, after=after, until=until)))

    def _tapped(self, rows: Iterator[Stored]) -> Iterator[Stored]:
        for row in rows:
            yield row
            # Reached once the verifier has taken it.
            self._tree.extend((row.hash,))
