"""Signed checkpoints in the C2SP forms tlog-checkpoint and signed-note: a tree's origin, size and root under Ed25519.

    <origin>
    <size, decimal>
    <root, base64>

    \u2014 <key name> <base64 of key id (4 bytes) and signature (64 bytes)>

The key's name is the origin. Its id is the first four bytes of SHA-256(name || 0x0A || 0x01 || public key), so a key
speaks for one library alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from ledger.errors import CheckpointInvalidError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ED25519 = b"\x01"
_DASH = "\u2014 "


class Checkpoint(msgspec.Struct, frozen=True):
    """What a checkpoint states."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The signed text, with its last newline."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


def _key_id(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public).digest()[:4]


class LogKey:
    """The key of one ledger. Each library is an origin of its own under the ledger's name."""

    def __init__(self, private: Ed25519PrivateKey, name: str = "") -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.name = name or f"sagebook-{hashlib.sha256(self.public).hexdigest()[:16]}"

    @classmethod
    def from_seed(cls, seed: bytes, name: str = "") -> LogKey:
        """A key from 32 secret bytes."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - see `load`

        return cls(Ed25519PrivateKey.from_private_bytes(seed), name)

    @classmethod
    def fresh(cls) -> LogKey:
        """A new key that nobody keeps."""
        return cls.from_seed(os.urandom(32))

    @classmethod
    def load(cls, path: Path, name: str = "") -> LogKey:
        """Read the key at `path`, or make it there, readable for its owner alone. Raises CheckpointInvalidError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(file, "wb") as new:
                new.write(base64.b64encode(os.urandom(32)) + b"\n")
                new.flush()
                os.fsync(new.fileno())
        try:
            seed = base64.b64decode(path.read_bytes(), validate=False)
            return cls.from_seed(seed, name)
        except (OSError, ValueError) as error:
            raise CheckpointInvalidError(f"the log's key {path} can not be read: {error}") from error

    def origin(self, library: str) -> str:
        """The origin, and key name, of a library."""
        return f"{self.name}/{quote(library, safe='')}"

    def verifier(self, library: str) -> str:
        """The public key of a library as signed-note verifier text: name+id+base64."""
        name = self.origin(library)
        told = base64.b64encode(_ED25519 + self.public).decode()
        return f"{name}+{_key_id(name, self.public).hex()}+{told}"

    def sign(self, library: str, size: int, root: bytes) -> str:
        """A signed checkpoint."""
        text = Checkpoint(self.origin(library), size, root).text()
        name = self.origin(library)
        blob = _key_id(name, self.public) + self._private.sign(text.encode())
        return f"{text}\n{_DASH}{name} {base64.b64encode(blob).decode()}\n"


def opened(note: str, verifier: str) -> Checkpoint:
    """Read a checkpoint that the verifier key signed. Raises CheckpointInvalidError."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - slow to load, and few calls need it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    name, public = _key(verifier)
    found = parsed(note)
    text = note[: note.rindex("\n\n") + 1]
    for line in note[len(text) + 1 :].splitlines():
        signer, _, told = line.removeprefix(_DASH).rpartition(" ")
        if not line.startswith(_DASH) or signer != name:
            continue
        try:
            blob = base64.b64decode(told, validate=True)
            if blob[:4] != _key_id(name, public):
                continue
            Ed25519PublicKey.from_public_bytes(public).verify(blob[4:], text.encode())
        except (binascii.Error, ValueError, InvalidSignature) as error:
            raise CheckpointInvalidError(f"the signature of {name!r} does not hold") from error
        if found.origin != name:
            break
        return found
    raise CheckpointInvalidError(f"the checkpoint of {found.origin!r} bears no signature of the key {verifier!r}")


def parsed(note: str) -> Checkpoint:
    """Read what a checkpoint states, whoever signed it. Raises CheckpointInvalidError."""
    try:
        text, signatures = note[: note.rindex("\n\n") + 1], note[note.rindex("\n\n") + 2 :]
        origin, size, root = text.split("\n")[:3]
        made = Checkpoint(origin, int(size), base64.b64decode(root, validate=True))
        whole = bool(origin) and size.isdecimal() and str(made.size) == size and len(made.root) == 32
    except (ValueError, binascii.Error) as error:
        raise CheckpointInvalidError(f"it is no signed checkpoint: {error}") from error
    if not whole or not text.startswith(made.text()) or not signatures.startswith(_DASH):
        raise CheckpointInvalidError("it is no signed checkpoint: origin, size, root, a blank line, signatures")
    return made


def _key(verifier: str) -> tuple[str, bytes]:
    try:
        name, told, data = verifier.strip().split("+", 2)
        public = base64.b64decode(data, validate=True)
        if public[:1] != _ED25519 or len(public) != 33 or _key_id(name, public[1:]).hex() != told:
            raise CheckpointInvalidError(f"{verifier!r} is no Ed25519 verifier key, or its id is another's")
    except (ValueError, binascii.Error):
        raise CheckpointInvalidError(f"{verifier!r} is no verifier key; it has the form name+id+base64") from None
    return name, public[1:]
