#!/usr/bin/env python3
"""Check a proof bundle of Sagebook with nothing but Python: no package, and no line of Sagebook's own.

    python3 verify_bundle.py bundle.json [--key KEY]

A bundle (`sagebook prove`) holds a signed checkpoint and proofs against it: that one record is in the log, that the
log extends an earlier checkpoint, or both. KEY is the ledger's verifier key as you kept it, `name+id+base64`; without
it the bundle's own is believed, which shows that the bundle holds together, not whose it is. Exit code 0: all holds.

Sources: Ed25519 is RFC 8032, 5.1 (verification alone); the tree is RFC 6962, 2.1, its proofs are checked as RFC 9162,
2.1.3.2 and 2.1.4.2 do; checkpoint and signature are C2SP tlog-checkpoint and signed-note; a record's hash is
SHA-256(hash of the record before || record), and the leaf of record s is number s - 1.
"""

import base64
import hashlib
import json
import sys


class Wrong(Exception):
    """Something that does not hold."""


def sha256(data):
    return hashlib.sha256(data).digest()


# --- Ed25519 (RFC 8032) -------------------------------------------------------------------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def added(a, b):
    """The sum of two points in extended coordinates."""
    left, right = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = right - left, d - c, d + c, right + left
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, point):
    """A point added to itself so many times."""
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = added(result, point)
        point = added(point, point)
        number >>= 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def point_of(data):
    """The point that 32 bytes stand for."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        raise Wrong("a point of the signature is not on the curve")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        raise Wrong("a point of the signature is not on the curve")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point_of(bytes([0x58]) + bytes([0x66]) * 31)


def signed(public, message, signature):
    """Whether the key made the signature (64 bytes) of the message."""
    if len(public) != 32 or len(signature) != 64:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    if scalar >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    return same(times(scalar, BASE), added(point_of(signature[:32]), times(challenge, point_of(public))))


# --- checkpoints (C2SP) -------------------------------------------------------------------------------------------


def checkpoint(note, key):
    """Size and root that a signed checkpoint states."""
    name, key_id, data = key.strip().split("+", 2)
    kind_and_public = base64.b64decode(data)
    if kind_and_public[:1] != b"\x01" or sha256(name.encode() + b"\n" + kind_and_public)[:4].hex() != key_id:
        raise Wrong("the key is no Ed25519 verifier key, or its id is another's")
    text, signatures = note[: note.rindex("\n\n") + 1], note[note.rindex("\n\n") + 2 :]
    origin, size, root = text.split("\n")[:3]
    if origin != name:
        raise Wrong(f"the checkpoint is of {origin}, the key of {name}")
    for line in signatures.splitlines():
        signer, _, told = line.removeprefix("\u2014 ").rpartition(" ")
        blob = base64.b64decode(told)
        if signer == name and blob[:4].hex() == key_id:
            if not signed(kind_and_public[1:], text.encode(), blob[4:]):
                raise Wrong("the checkpoint's signature does not hold")
            return int(size), base64.b64decode(root)
    raise Wrong("the checkpoint bears no signature of the key")


# --- the tree (RFC 6962) ------------------------------------------------------------------------------------------


def node(left, right):
    return sha256(b"\x01" + left + right)


def climb(position, last, path, start):
    """Both roots that a path leads to: of what lies left of and under it, and of everything."""
    old = new = start
    for item in path:
        if last == 0:
            raise Wrong("the proof is longer than the tree is high")
        if position & 1 or position == last:
            old, new = node(item, old), node(item, new)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            new = node(new, item)
        position, last = position >> 1, last >> 1
    if last:
        raise Wrong("the proof is shorter than the tree is high")
    return old, new


def check_inclusion(record_hash, sequence, size, path, root):
    if not 1 <= sequence <= size:
        raise Wrong(f"record {sequence} is not among the {size} of the checkpoint")
    if climb(sequence - 1, size - 1, path, sha256(b"\x00" + record_hash))[1] != root:
        raise Wrong(f"record {sequence} is not what the checkpoint's tree has there")


def check_consistency(first, old_root, second, new_root, path):
    if not 1 <= first <= second:
        raise Wrong(f"a log of {second} records can not extend one of {first}")
    if first == second:
        if path or old_root != new_root:
            raise Wrong("the log was rewritten since the earlier checkpoint")
        return
    items = [old_root, *path] if first & (first - 1) == 0 else path
    if not items:
        raise Wrong("the proof is empty")
    position, last = first - 1, second - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    if climb(position, last, items[1:], items[0]) != (old_root, new_root):
        raise Wrong("the log does not extend the earlier checkpoint: it was rewritten or cut")


def check(bundle, key):
    """Check everything in a bundle; gives what was shown, a line each."""
    if bundle["format"] != "sagebook.proof/1":
        raise Wrong(f"the format {bundle['format']} is not known here")
    size, root = checkpoint(bundle["checkpoint"], key)
    yield f"the checkpoint of {size} records is signed by {key.strip()}"
    if "since" in bundle:
        old_size, old_root = checkpoint(bundle["since"]["checkpoint"], key)
        check_consistency(old_size, old_root, size, root, [bytes.fromhex(item) for item in bundle["since"]["path"]])
        yield f"the log extends the checkpoint of {old_size} records"
    if "record" in bundle:
        told = bundle["record"]
        record_hash, record = bytes.fromhex(told["hash"]), told["record"].encode()
        check_inclusion(record_hash, told["sequence"], size, [bytes.fromhex(item) for item in told["path"]], root)
        whole = sha256(bytes.fromhex(told["previous_hash"]) + record) == record_hash
        if not whole and not told.get("redacted"):
            raise Wrong(f"record {told['sequence']} was changed: its hash is another's")
        yield f"record {told['sequence']} is in the log" + ("" if whole else "; its text was redacted since")


def main(arguments):
    key = arguments[arguments.index("--key") + 1] if "--key" in arguments else None
    with open(arguments[0], encoding="utf-8") as file:
        bundle = json.load(file)
    try:
        for line in check(bundle, key or bundle["key"]):
            print(line)
    except (Wrong, KeyError, ValueError, TypeError) as error:
        print(f"does not hold: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
