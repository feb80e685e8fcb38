"""Level 1, reductions of a vector and copies: against numpy loops, by hand, and by their properties."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device.operators.references import agree, reference


def taken(x, n, incx):
    return np.array([x[i * int(incx)] for i in range(int(n))])


def best_of(sizes, better):
    best = 0
    for i, size in enumerate(sizes):
        if better(size, sizes[best]):
            best = i
    return np.int32(best + 1)


def by_hand_gather(x, indices, axis):
    return np.take(x, indices, axis=int(axis))


def by_hand_scatter(*arrays, axis):
    *variables, indices, updates, mask = arrays
    outs = []
    for i, variable in enumerate(variables):
        out = variable.copy()
        start, length = indices[i] if mask[i] else (0, 0)
        for j in range(length):
            index = (Ellipsis, start + j) if axis == -1 else (Ellipsis, start + j, slice(None))
            source = (Ellipsis, j) if axis == -1 else (Ellipsis, j, slice(None))
            out[index] = updates[i][source]
        outs.append(out)
    return tuple(outs)


def by_hand_halves(x):
    half = x.shape[-1] // 2
    return x * np.where(np.arange(x.shape[-1]) < half, 1, -1)


BY_HAND = {
    "Icamax": lambda x, n, incx: best_of(np.abs(taken(x, n, incx).real) + np.abs(taken(x, n, incx).imag), np.greater),
    "Isamin": lambda x, n, incx: best_of(np.abs(taken(x, n, incx)), np.less),
    "Sasum": lambda x, n, incx: np.abs(taken(x, n, incx)).sum(),
    "Snrm2": lambda x, n, incx: np.linalg.norm(taken(x, n, incx)),
    "GatherV3": by_hand_gather,
    "ScatterList": by_hand_scatter,
    "StridesliceNegConcatV2": by_hand_halves,
    "Eye": lambda y: np.broadcast_to(np.eye(*y.shape[-2:]), y.shape),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-10."""
    agree(name, BY_HAND[name])


def test_indices_count_from_one_and_name_the_first() -> None:
    """|re| + |im| of 3 + 0i, 2 - 2i, -2 + 2i is 3, 4, 4: the second, also of every other element."""
    x = np.array([3, 2 - 2j, -2 + 2j, 100])
    assert reference("Icamax", x, n=3, incx=1)[0] == 2
    assert reference("Icamax", x, n=2, incx=2)[0] == 2
    assert reference("Icamax", x, n=1, incx=2)[0] == 1
    y = np.array([5.0, -1, 1, -0.5, 9])
    assert reference("Isamin", y, n=3, incx=1)[0] == 2
    assert reference("Isamin", y, n=5, incx=1)[0] == 4
    assert reference("Isamin", y, n=3, incx=2)[0] == 2


def test_sums_and_norms_of_known_vectors() -> None:
    """1 + 2 + 3 = 6 of every other element; the norm of (3, 4) is 5, and 1e200 does not overflow in its own scale."""
    assert reference("Sasum", np.array([1, 99, -2, 99, 3.0]), n=3, incx=2)[0] == 6
    assert reference("Snrm2", np.array([3.0, -4, 12]), n=2, incx=1)[0] == 5
    assert reference("Snrm2", np.array([3.0, -4, 12]), n=3, incx=1)[0] == 13


def test_norms_obey_their_inequalities() -> None:
    """|x|_2 <= |x|_1 <= sqrt(n) |x|_2, and both scale with the vector."""
    x = np.random.default_rng(0).standard_normal(301)
    one, two = (reference(name, x, n=301, incx=1)[0] for name in ("Sasum", "Snrm2"))
    assert two <= one <= 301**0.5 * two
    assert reference("Sasum", -3 * x, n=301, incx=1)[0] == pytest.approx(3 * one)
    assert reference("Snrm2", -3 * x, n=301, incx=1)[0] == pytest.approx(3 * two)


def test_gathering_all_in_order_copies_and_a_permutation_undoes_itself() -> None:
    """Indices 0 .. n - 1 give x; a permutation and its inverse give x again."""
    rng = np.random.default_rng(0)
    x, order = rng.standard_normal((4, 7)), rng.permutation(7)
    assert np.array_equal(reference("GatherV3", x, np.arange(7), axis=1)[0], x)
    (mixed,) = reference("GatherV3", x, order, axis=1)
    assert np.array_equal(reference("GatherV3", mixed, np.argsort(order), axis=1)[0], x)


def test_scattering_replaces_only_the_slice() -> None:
    """Start 1, length 2 of the last axis takes the updates' first two; an unset mask and a length of 0 change nothing."""
    x, updates = np.zeros((1, 4)), np.array([[[7.0, 8, 9, 10]]])
    assert reference("ScatterList", x, np.array([[1, 2]]), updates, np.array([True]), axis=-1)[0].tolist() == [
        [0, 7, 8, 0]
    ]
    for pair, mask in (([1, 2], False), ([1, 0], True)):
        assert not reference("ScatterList", x, np.array([pair]), updates, np.array([mask]), axis=-1)[0].any()


def test_negating_twice_is_a_copy() -> None:
    """The second half changes its sign, the first does not, and twice is nothing."""
    x = np.arange(1.0, 7).reshape(1, 6)
    (once,) = reference("StridesliceNegConcatV2", x)
    assert once.tolist() == [[1, 2, 3, -4, -5, -6]]
    assert np.array_equal(reference("StridesliceNegConcatV2", once)[0], x)


def test_a_unit_matrix_changes_nothing() -> None:
    """Times x it is x; a wide one has as many ones as rows."""
    x = np.random.default_rng(0).standard_normal((3, 5))
    assert np.array_equal(x @ reference("Eye", np.zeros((5, 5)))[0], x)
    assert reference("Eye", np.full((2, 3, 8), 9.0))[0].sum() == 6
