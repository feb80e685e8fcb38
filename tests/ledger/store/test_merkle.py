"""The tree of RFC 6962: the test vectors of Certificate Transparency, and every proof of every small tree."""

from __future__ import annotations

import hashlib

import pytest

from ledger.store.merkle import BLOCK, EMPTY_ROOT, Tree, extends, includes, leaf_hash, node_hash

# The leaves and roots of Certificate Transparency's reference tests (merkletree_test).
LEAVES = [
    bytes.fromhex(text)
    for text in (*("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"),)
]
ROOTS = (
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)


def tree_of(leaves: list[bytes], size: int | None = None) -> Tree:
    made = Tree(lambda after, until: leaves[after:until])
    made.extend(leaves[:size])
    return made


def naive(leaves: list[bytes]) -> bytes:
    """The definition of RFC 6962, 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + naive(leaves[:k]) + naive(leaves[k:])).digest()


def test_the_roots_are_those_of_certificate_transparency():
    """One to eight leaves, and the empty tree."""
    assert [tree_of(LEAVES, n).root().hex() for n in range(1, 9)] == list(ROOTS)
    assert tree_of([]).root() == EMPTY_ROOT == hashlib.sha256(b"").digest()


def test_the_proofs_are_those_of_certificate_transparency():
    """Audit path of leaf 5 of 8, and the proof from 3 to 7, as the example of RFC 6962, 2.1.3 draws them."""
    tree = tree_of(LEAVES)
    leaf = [leaf_hash(item) for item in LEAVES]
    pair = [node_hash(leaf[i], leaf[i + 1]) for i in (0, 2, 4, 6)]
    assert tree.inclusion(5, 8) == [leaf[4], pair[3], node_hash(pair[0], pair[1])]
    assert tree.inclusion(6, 7) == [pair[2], node_hash(pair[0], pair[1])]
    assert tree.consistency(3, 7) == [leaf[2], leaf[3], pair[0], node_hash(pair[2], leaf[6])]
    assert tree.consistency(4, 7) == [node_hash(pair[2], leaf[6])]
    assert tree.consistency(6, 8) == [pair[2], pair[3], node_hash(pair[0], pair[1])]


@pytest.mark.parametrize("size", [*range(1, 34), 255, 256, 257, 511, 512, 513, 700, 1300])
def test_every_proof_of_a_tree_holds_and_no_changed_one(size: int):
    """Roots equal the definition's; each proof holds for its own place and sizes, and not after a bit was flipped."""
    leaves = [hashlib.sha256(b"%d" % n).digest() for n in range(size)]
    tree = tree_of(leaves)
    root = tree.root()
    assert root == naive(leaves)
    for index in range(0, size, 1 if size < 40 else 61):
        path = tree.inclusion(index, size)
        assert includes(leaf_hash(leaves[index]), index, size, path, root)
        assert not includes(leaf_hash(b"other"), index, size, path, root)
        assert not includes(leaf_hash(leaves[index]), index + 1, size, path, root)
        assert not includes(leaf_hash(leaves[index]), index, size, [*path, root], root)
        if path:
            assert not includes(leaf_hash(leaves[index]), index, size, [bytes(32), *path[1:]], root)
            assert not includes(leaf_hash(leaves[index]), index, size, path[:-1], root)
    for first in range(1, size + 1, 1 if size < 40 else 61):
        old = tree.root(first)
        assert old == naive(leaves[:first])
        path = tree.consistency(first, size)
        assert extends(first, size, path, old, root)
        assert not extends(first, size, path, leaf_hash(b"other"), root)
        assert not extends(first, size, [*path, root], old, root)
        if path:
            assert not extends(first, size, path, old, leaf_hash(b"other"))
            assert not extends(first, size, path[:-1], old, root)
            assert not extends(first, size, [bytes(32), *path[1:]], old, root)


def test_a_tree_goes_on_from_its_blocks():
    """What is kept of 700 leaves are the roots of two blocks; the rest comes from the records again."""
    leaves = [hashlib.sha256(b"%d" % n).digest() for n in range(700)]
    blocks = tree_of(leaves).blocks
    assert len(blocks) == 64
    again = Tree(lambda after, until: leaves[after:until], blocks)
    assert again.size == 2 * BLOCK
    again.extend(leaves[again.size :])
    assert again.root() == naive(leaves)
    assert includes(leaf_hash(leaves[3]), 3, 700, again.inclusion(3, 700), naive(leaves))


def test_nothing_is_proved_of_places_outside():
    """An index at or past the size, and a larger tree before a smaller one."""
    root = tree_of(LEAVES).root()
    assert not includes(leaf_hash(LEAVES[0]), 8, 8, [], root)
    assert not includes(leaf_hash(LEAVES[0]), -1, 8, [], root)
    assert not extends(9, 8, [], root, root)
    assert extends(0, 8, [], EMPTY_ROOT, root)
