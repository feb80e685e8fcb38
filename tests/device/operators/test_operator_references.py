"""Every torch reference against a formulation of its own in numpy, against hand-worked values and against properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.operators import get, names
from device.operators.check import draw

torch = pytest.importorskip("torch")


def run(name: str, *arrays, **attributes: float) -> np.ndarray:
    (out,) = get(name).reference(*(torch.tensor(np.asarray(a), dtype=torch.float64) for a in arrays), **attributes)
    return out.numpy()


def normal_cdf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(x)


def by_hand_argmax(x: np.ndarray) -> np.ndarray:
    def first(row: np.ndarray) -> int:
        best = 0
        for i, value in enumerate(row):
            if np.isnan(row[best]):
                break
            if np.isnan(value) or value > row[best]:
                best = i
        return best

    return np.apply_along_axis(first, -1, x)


def by_hand_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    weights = np.exp(np.einsum("sd,td->st", q, k) / math.sqrt(q.shape[1]))
    return np.einsum("st,td->sd", weights / weights.sum(axis=1, keepdims=True), v)


def by_hand_layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float) -> np.ndarray:
    n = x.shape[-1]
    mean = np.add.reduce(x, axis=-1, keepdims=True) / n
    second = np.add.reduce(x * x, axis=-1, keepdims=True) / n
    return (x - mean) * gamma / (second - mean**2 + eps) ** 0.5 + beta


def by_hand_linear(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    y = np.einsum("ml,ln->mn", a, b) + bias
    return y * normal_cdf(y)


def by_hand_swiglu(x: np.ndarray) -> np.ndarray:
    n = x.shape[-1] // 2
    a, b = x[..., :n], x[..., n:]
    return a * b * (0.5 + 0.5 * np.tanh(a / 2))  # sigmoid(a) = (1 + tanh(a / 2)) / 2


BY_HAND = {
    "add": np.add,
    "gelu": lambda x: x * normal_cdf(x),
    "transpose": lambda x: np.swapaxes(x, -1, -2),
    "argmax": by_hand_argmax,
    "swiglu": by_hand_swiglu,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "layer_norm": by_hand_layer_norm,
    "rms_norm": lambda x, gamma, eps: x * gamma / np.sqrt((x**2).sum(axis=-1, keepdims=True) / x.shape[-1] + eps),
    "logsumexp": lambda x: np.log(np.exp(x).sum(axis=-1)),
    "matmul": lambda a, b: np.einsum("ml,ln->mn", a, b),
    "matmul_bias_gelu": by_hand_linear,
    "attention": by_hand_attention,
}


@pytest.mark.parametrize("name", names())
def test_reference_equals_an_independent_formulation(name) -> None:
    """On all visible and hidden cases but the largest, torch's float64 reference and numpy agree to 1e-11."""
    operator = get(name)
    rng = np.random.default_rng(11)
    cases = [
        case
        for case in (*operator.cases, *operator.hidden_cases(rng))
        if max(spec.elements for spec in case.inputs) <= 40_000
    ]
    assert len(cases) >= 12
    for case in cases:
        arrays = [np.array(draw(spec, rng), dtype=np.float64) for spec in case.inputs]
        expected = BY_HAND[name](*arrays, **case.attributes)
        got = run(name, *arrays, **case.attributes)
        assert got.shape == operator.outputs(case)[0].shape
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11, err_msg=case.name)


def test_values_worked_out_by_hand() -> None:
    """Small inputs whose results are known in closed form or from tables."""
    assert run("add", [[1], [2]], [10, 20]).tolist() == [[11, 21], [12, 22]]
    assert run("gelu", [0.0, 1.0, -1.0]) == pytest.approx([0, 0.841344746068543, -0.158655253931457], abs=1e-15)
    assert run("transpose", [[1, 2, 3], [4, 5, 6]]).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert run("argmax", [[1, 3, 3], [-2, -1, -9]]).tolist() == [1, 1]
    assert run("swiglu", [[0, math.log(3), 5, 8]]) == pytest.approx(np.array([[0, 6 * math.log(3)]]))
    assert run("softmax", [[0, math.log(3)]]) == pytest.approx(np.array([[0.25, 0.75]]))
    # Mean 2, variance 2/3.
    root = math.sqrt(1.5)
    assert run("layer_norm", [[1, 2, 3]], [1, 1, 2], [0, 5, 0], eps=0) == pytest.approx(
        np.array([[-root, 5, 2 * root]])
    )
    # Mean square (9 + 16) / 2 = 12.5; with eps 3.5 the root is 4.
    assert run("rms_norm", [[3, 4]], [1, 2], eps=3.5) == pytest.approx(np.array([[0.75, 2]]))
    assert run("logsumexp", [[math.log(2), math.log(3), math.log(5)]]) == pytest.approx([math.log(10)])
    assert run("matmul", [[1, 2], [3, 4]], [[5, 6], [7, 8]]).tolist() == [[19, 22], [43, 50]]
    # 1 * 2 + 1 * 3 - 4 = 1, and gelu(1) is tabled.
    assert run("matmul_bias_gelu", [[1, 1]], [[2], [3]], [-4]) == pytest.approx(np.array([[0.841344746068543]]))
    # d = 4 halves the score: exp(2 ln 3 / 2) = 3 against exp(0) = 1.
    score = 2 * math.log(3)
    q, k = [[1, 0, 0, 0]], [[score, 0, 0, 0], [0, 7, 0, 0]]
    assert run("attention", q, k, [[4, 0, 0, 8], [0, 4, 0, 0]]) == pytest.approx(np.array([[3, 1, 0, 6]]))


rows = st.integers(1, 40).flatmap(
    lambda n: st.lists(st.lists(st.floats(-30, 30), min_size=n, max_size=n), min_size=1, max_size=4)
)


@given(rows, st.floats(-500, 500))
def test_softmax_rows_sum_to_one_and_ignore_a_shift(x, shift) -> None:
    """Weights are not negative, sum to one, and adding a number to a whole row changes nothing."""
    weights = run("softmax", x)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(run("softmax", np.array(x) + shift), weights, rtol=1e-10, atol=1e-14)


@given(rows, st.floats(-500, 500))
def test_logsumexp_moves_with_a_shift_and_bounds_the_maximum(x, shift) -> None:
    """LSE(x + c) = LSE(x) + c, and max <= LSE <= max + log n."""
    x = np.array(x)
    got = run("logsumexp", x)
    np.testing.assert_allclose(run("logsumexp", x + shift), got + shift, rtol=1e-12, atol=1e-10)
    assert (got >= x.max(axis=-1) - 1e-12).all()
    assert (got <= x.max(axis=-1) + math.log(x.shape[-1]) + 1e-12).all()


def test_logsumexp_of_infinities() -> None:
    """All minus infinity stays so, and so does one plus infinity."""
    assert run("logsumexp", [[-np.inf, -np.inf], [0, np.inf], [1, -np.inf]]).tolist() == [-np.inf, np.inf, 1]


def test_layer_norm_gives_mean_zero_and_variance_one() -> None:
    """With unit scale, no shift and eps 0, whatever the row's own mean and spread."""
    x = np.random.default_rng(0).standard_normal((6, 200)) * 7 + 40
    y = run("layer_norm", x, np.ones(200), np.zeros(200), eps=0)
    np.testing.assert_allclose(y.mean(axis=-1), 0, atol=1e-13)
    np.testing.assert_allclose(y.var(axis=-1), 1, rtol=1e-12)


def test_rms_norm_gives_mean_square_one_and_ignores_a_positive_factor() -> None:
    """With unit scale and eps 0; a negative factor turns the sign."""
    x = np.random.default_rng(0).standard_normal((6, 200))
    y = run("rms_norm", x, np.ones(200), eps=0)
    np.testing.assert_allclose((y**2).mean(axis=-1), 1, rtol=1e-13)
    np.testing.assert_allclose(run("rms_norm", -3 * x, np.ones(200), eps=0), -y, rtol=1e-12)


def test_argmax_gives_the_first_of_equals_and_the_first_nan() -> None:
    """Torch's rules: ties go to the lower index, a NaN beats an infinity."""
    x = [[2, 7, 7, 7], [np.inf, np.nan, 0, np.nan], [-np.inf] * 4]
    assert run("argmax", x).tolist() == [1, 1, 0]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_matmul_is_linear_and_transposes(m, k, n, seed) -> None:
    """a(2b + c) = 2ab + ac, (ab)^T = b^T a^T, and the identity changes nothing."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal((k, n))
    ab = run("matmul", a, b)
    np.testing.assert_allclose(run("matmul", a, 2 * b + c), 2 * ab + run("matmul", a, c), atol=1e-12)
    np.testing.assert_allclose(run("matmul", b.T, a.T), ab.T, atol=1e-13)
    assert np.array_equal(run("matmul", a, np.eye(k)), a)


def test_transpose_twice_is_a_copy() -> None:
    """The transpose undoes itself, and its result has dense memory of its own."""
    x = torch.arange(30.0).reshape(2, 3, 5)
    (once,) = get("transpose").reference(x)
    (twice,) = get("transpose").reference(once)
    assert once.is_contiguous()
    assert torch.equal(twice, x)
    assert twice.data_ptr() != x.data_ptr()
    (base,) = get("transpose").baseline(x.transpose(-2, -1))
    assert base.data_ptr() != x.data_ptr(), "the baseline must copy even where the view is dense already"


def test_gelu_and_its_mirror_image_differ_by_x() -> None:
    """Phi(x) + Phi(-x) = 1, so gelu(x) - gelu(-x) = x."""
    x = np.linspace(-9, 9, 401)
    np.testing.assert_allclose(run("gelu", x) - run("gelu", -x), x, atol=1e-14)


def test_gelu_keeps_the_digits_of_its_far_tail() -> None:
    """Phi(-10) = 7.61985302416053e-24 by the tables, where 1 + erf has rounded to zero."""
    assert run("gelu", [-10.0])[0] == pytest.approx(-7.61985302416053e-23, rel=1e-13)


def test_swiglu_is_linear_in_its_second_half() -> None:
    """Doubling b doubles the output; an open gate passes a * b, a shut one almost nothing."""
    a, b = np.linspace(-5, 5, 11), np.linspace(1, 3, 11)
    np.testing.assert_allclose(run("swiglu", [*a, *(2 * b)]), 2 * run("swiglu", [*a, *b]), rtol=1e-14)
    assert run("swiglu", [40, -40, 3, 3]) == pytest.approx([120, 0], abs=1e-14)


def test_attention_averages_values_when_keys_are_equal() -> None:
    """Equal keys share the weight, one key takes it all, and the order of keys does not matter."""
    rng = np.random.default_rng(0)
    q, v = rng.standard_normal((5, 8)), rng.standard_normal((7, 8))
    got = run("attention", q, np.tile(rng.standard_normal(8), (7, 1)), v)
    np.testing.assert_allclose(got, np.tile(v.mean(axis=0), (5, 1)), atol=1e-14)
    np.testing.assert_allclose(run("attention", q, v[:1], v[:1]), np.tile(v[0], (5, 1)), atol=1e-14)
    k, order = rng.standard_normal((7, 8)), rng.permutation(7)
    np.testing.assert_allclose(run("attention", q, k[order], v[order]), run("attention", q, k, v), atol=1e-13)


def test_attention_does_not_overflow() -> None:
    """Scores in the thousands put all weight on the best key."""
    q, k = np.full((1, 4), 100.0), np.array([[100.0] * 4, [99.0] * 4])
    assert run("attention", q, k, [[1.0] * 4, [5.0] * 4]).tolist() == [[1, 1, 1, 1]]
