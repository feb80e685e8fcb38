"""Level 3, products of matrices: against numpy, by hand, and by their properties."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device.operators.references import agree, reference


def parts(ends):
    begins = [0, *ends[:-1]]
    return list(zip(begins, ends, strict=True))


def by_hand_group(*arrays):
    count = (len(arrays) - 2) // 3
    a, b, c = (arrays[i * count : (i + 1) * count] for i in range(3))
    alpha, beta = arrays[-2:]
    return tuple(alpha[i] * np.einsum("ml,ln->mn", a[i], b[i]) + beta[i] * c[i] for i in range(count))


def by_hand_rows(a, b, ends):
    group = np.searchsorted(ends, np.arange(len(a)), side="right")
    return np.einsum("mk,mkn->mn", a, b[group])


def by_hand_sum(a, b, ends):
    inside = np.array([[begin <= j < end for j in range(a.shape[1])] for begin, end in parts(ends)], dtype=float)
    return np.einsum("mk,gk,kn->gmn", a, inside, b, optimize=True)


def by_hand_scaled(a, b, scale, per_token):
    return np.einsum("mk,kn->mn", a.astype(np.int64), b.astype(np.int64)) * np.outer(per_token, scale)


def by_hand_scaled_rows(a, b, scale, per_token, ends):
    group = np.searchsorted(ends, np.arange(len(a)), side="right")
    sums = np.einsum("mk,mkn->mn", a.astype(np.int64), b[group].astype(np.int64))
    return sums * scale[group] * per_token[:, None]


def by_hand_scaled_sum(a, b, scale, per_token, ends):
    sums = by_hand_sum(a.astype(float), b.astype(float), ends)
    return sums * scale[:, None, :] * per_token[:, :, None]


def plain(a, b):
    return np.einsum("...ml,...ln->...mn", a, b)


BY_HAND = {
    "BasicMatmul": plain,
    "OptimizedMatmul": plain,
    "PaddingMatmul": plain,
    "SplitkMatmul": plain,
    "BatchedMatmul": plain,
    "MatmulAdd": lambda a, b, c: plain(a, b) + c,
    "MatmulBias": lambda a, b, bias: plain(a, b) + bias[None, :],
    "Gemm": lambda a, b, c, alpha, beta: plain(alpha * a, b) + beta * c,
    "Gemv": lambda a, x, y, alpha, beta: np.einsum("mn,n->m", a, x) * alpha + beta * y,
    "GroupGemm": by_hand_group,
    "GroupedMatmulSliceM": by_hand_rows,
    "GroupedMatmulSliceK": by_hand_sum,
    "QuantMatmul": by_hand_scaled,
    "GroupedMatmulSliceMPerTokenDequant": by_hand_scaled_rows,
    "GroupedMatmulSliceKPerTokenDequant": by_hand_scaled_sum,
}


@pytest.mark.parametrize("name", BY_HAND)
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all small visible and hidden cases, torch's float64 reference and numpy agree to 1e-10."""
    agree(name, BY_HAND[name], largest=30_000)


def test_products_of_small_matrices() -> None:
    """[[1, 2], [3, 4]] times [[5, 6], [7, 8]] is [[19, 22], [43, 50]]; then alpha, beta, a bias and a matrix."""
    a, b = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    a, b = a.astype(float), b.astype(float)
    for name in ("BasicMatmul", "OptimizedMatmul", "PaddingMatmul", "SplitkMatmul"):
        assert reference(name, a, b)[0].tolist() == [[19, 22], [43, 50]]
    assert reference("MatmulBias", a, b, np.array([1.0, 2]))[0].tolist() == [[20, 24], [44, 52]]
    assert reference("MatmulAdd", a, b, -a)[0].tolist() == [[18, 20], [40, 46]]
    assert reference("Gemm", a, b, a, alpha=2, beta=10)[0].tolist() == [[48, 64], [116, 140]]
    assert reference("Gemv", a, np.array([1.0, 1]), np.array([1.0, 2]), alpha=2, beta=-1)[0].tolist() == [5, 12]


def test_groups_of_rows_and_of_the_sum() -> None:
    """Ends 1, 1, 2: the first row takes the first matrix, the empty group none, the second row the third."""
    a = np.array([[1.0, 2], [3, 4]])
    b = np.stack([np.eye(2), np.full((2, 2), 99.0), 10 * np.eye(2)])
    ends = np.array([1, 1, 2])
    assert reference("GroupedMatmulSliceM", a, b, ends)[0].tolist() == [[1, 2], [30, 40]]
    out = reference("GroupedMatmulSliceK", a, np.eye(2), ends)[0]
    assert out.tolist() == [[[1, 0], [3, 0]], [[0, 0], [0, 0]], [[0, 2], [0, 4]]]


def test_groups_of_the_sum_add_up_to_the_whole_product() -> None:
    """However the sum is cut, the parts together are a b."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 40)), rng.standard_normal((40, 3))
    parts = reference("GroupedMatmulSliceK", a, b, np.array([3, 17, 17, 40]))[0]
    np.testing.assert_allclose(parts.sum(axis=0), a @ b, atol=1e-13)


def test_int8_sums_are_exact_beyond_float32() -> None:
    """2000 products of 127 * 127 and one of 1 * 1: 32258001, which float32 cannot hold, survives a scale of 1."""
    a, b = np.full((1, 2001), 127, dtype=np.int8), np.full((2001, 1), 127, dtype=np.int8)
    a[0, -1] = b[-1, 0] = 1
    one = np.ones(1)
    assert float(np.float32(32258001)) != 32258001
    assert reference("QuantMatmul", a, b, one, one)[0].item() == 32258001


def test_scaled_products_are_linear_in_both_scales() -> None:
    """Doubling a row's scale doubles the row, a column's the column."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-127, 128, (3, 9)).astype(np.int8), rng.integers(-127, 128, (9, 4)).astype(np.int8)
    rows, columns = rng.random(3), rng.random(4)
    (once,) = reference("QuantMatmul", a, b, columns, rows)
    (twice,) = reference("QuantMatmul", a, b, columns * [1, 2, 1, 1], rows * [1, 1, 2])
    np.testing.assert_allclose(twice, once * np.outer([1, 1, 2], [1, 2, 1, 1]), rtol=1e-15)
