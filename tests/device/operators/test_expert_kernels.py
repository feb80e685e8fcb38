"""Every expert kernel, compiled and run through its C entry point, against the float64 reference."""

from __future__ import annotations

import math
import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from device.operators import Case, TensorSpec, get, names
from device.operators.check import bound, draw
from tests.device.operators.kernels import Prepared, compile_kernel, run_kernel

torch = pytest.importorskip("torch")

BUILDS = [(name, "native") for name in names()]
if platform.machine() == "x86_64":
    # The narrowest vectors, for which all code is portable; these kernels use all shared headers.
    BUILDS += [(name, "x86-64") for name in ("gelu", "transpose", "argmax", "layer_norm", "attention")]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory):
    """Compile an operator's expert kernel once."""
    folder = tmp_path_factory.mktemp("kernels")
    built: dict[tuple[str, str], Path] = {}

    def build(name: str, machine: str = "native") -> Path:
        if (name, machine) not in built:
            built[name, machine] = compile_kernel(get(name), folder, machine)
        return built[name, machine]

    return build


def oracle(name: str, prepared: Prepared) -> list[np.ndarray]:
    inputs = [torch.from_numpy(array.astype(np.float64)) for array in prepared.arrays]
    return [out.numpy() for out in get(name).reference(*inputs, **prepared.case.attributes)]


def run_values(library: Path, folder: Path, name: str, *arrays: np.ndarray, **attributes: float) -> np.ndarray:
    """Run a one-output kernel on dense arrays."""
    case = Case("values", tuple(TensorSpec(array.shape) for array in arrays), attributes)
    return run_kernel(library, folder, [Prepared(case, arrays, get(name).outputs(case))])[0][0]


@pytest.mark.parametrize(("name", "machine"), BUILDS)
def test_kernel_agrees_with_the_float64_reference(name, machine, library, tmp_path) -> None:
    """All visible and hidden cases, at three scales, are within what float32 rounding of their sums allows."""
    operator = get(name)
    rng = np.random.default_rng(20_240)
    cases = [*operator.cases, *operator.hidden_cases(rng)]
    prepared = []
    for number, case in enumerate(cases):
        scale = np.float32((1.0, 3.0, 0.01)[number % 3])
        arrays = tuple(np.array(draw(spec, rng)) * scale for spec in case.inputs)
        prepared.append(Prepared(case, arrays, operator.outputs(case)))
    results = run_kernel(library(name, machine), tmp_path / "run", prepared)
    for item, outputs in zip(prepared, results, strict=True):
        for expected, got in zip(oracle(name, item), outputs, strict=True):
            if got.dtype == np.int64:
                assert np.array_equal(expected, got), item.case.name
                continue
            allowed = _allowed(name, item, expected)
            assert np.all(np.abs(expected - got) <= allowed), (item.case.name, np.abs(expected - got).max(), allowed)


def _allowed(name: str, item: Prepared, expected: np.ndarray) -> float:
    allowed = bound(get(name), item.case, "float32", expected)
    if name in {"matmul", "matmul_bias_gelu"}:
        # Rounding of a sum follows its terms, not the sum, which may cancel (Higham, Accuracy and Stability, 3.1).
        a, b = (np.abs(array.astype(np.float64)) for array in item.arrays[:2])
        allowed += 2.0**-23 * float(np.sqrt((a**2) @ (b**2)).max()) * 8
    return allowed


@pytest.mark.parametrize("name", names())
def test_kernel_writes_strided_outputs(name, library, tmp_path) -> None:
    """A kernel honours the strides of its output: written with gaps, the values are the same bytes."""
    operator = get(name)
    rng = np.random.default_rng(7)
    case = next(case for case in operator.cases if case.name in {"tail", "column"})
    arrays = tuple(np.array(draw(spec, rng)) for spec in case.inputs)
    (dense,) = operator.outputs(case)
    gaps = replace(dense, strides=tuple(2 * stride for stride in dense.layout))
    prepared = [Prepared(case, arrays, (spec,)) for spec in (dense, gaps)]
    (plain,), (strided,) = run_kernel(library(name), tmp_path / "run", prepared)
    assert plain.tobytes() == strided.tobytes()


@pytest.mark.parametrize("name", names())
def test_kernel_repeats_itself(name, library, tmp_path) -> None:
    """An operator that promises determinism gives the same bytes again."""
    operator = get(name)
    assert operator.deterministic
    case = next(case for case in operator.cases if case.timed)
    rng = np.random.default_rng(5)
    item = Prepared(case, tuple(np.array(draw(spec, rng)) for spec in case.inputs), operator.outputs(case))
    (first,), (second,) = run_kernel(library(name), tmp_path / "run", [item, item])
    assert first.tobytes() == second.tobytes()


def test_gelu_keeps_the_digits_of_its_negative_tail(library, tmp_path) -> None:
    """Down to x = -8, where 1 + erf(x / sqrt 2) has no digit left, the relative error stays below 1e-5."""
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    got = run_values(library("gelu"), tmp_path / "run", "gelu", x)
    expected = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.astype(np.float64)])
    assert np.all(np.abs(got - expected) <= 1e-5 * np.abs(expected))


def test_swiglu_does_not_overflow(library, tmp_path) -> None:
    """Gates of -1e4, -100, 0, 100 and 1e4 give 0, almost 0, 0, 100 and 1e4 times the other half, and no NaN."""
    x = np.array([[-1e4, -100, 0, 100, 1e4, 2, 2, 2, 2, 2]], dtype=np.float32)
    got = run_values(library("swiglu"), tmp_path / "run", "swiglu", x)
    assert np.allclose(got, [[0, 0, 0, 200, 2e4]], rtol=1e-6, atol=1e-37)


def test_softmax_stands_large_and_masked_scores(library, tmp_path) -> None:
    """Scores near 1e4 do not overflow, a score of minus infinity weighs nothing, a NaN spoils its own row only."""
    x = np.full((3, 20), 1e4, dtype=np.float32)
    x[1, :10] = -np.inf
    x[2, 3] = np.nan
    got = run_values(library("softmax"), tmp_path / "run", "softmax", x)
    assert np.allclose(got[0], 1 / 20, rtol=1e-6)
    assert np.allclose(got[1], [0.0] * 10 + [0.1] * 10, rtol=1e-6)
    assert np.isnan(got[2]).all()


def test_logsumexp_keeps_infinities(library, tmp_path) -> None:
    """All minus infinity gives minus infinity, one plus infinity gives plus infinity, NaN gives NaN, 1e4 no overflow."""
    x = np.zeros((4, 33), dtype=np.float32)
    x[0] = -np.inf
    x[1, 32] = np.inf
    x[2, 5], x[2, 6] = np.nan, np.inf
    x[3] = 1e4
    got = run_values(library("logsumexp"), tmp_path / "run", "logsumexp", x)
    assert got[0] == -np.inf
    assert got[1] == np.inf
    assert np.isnan(got[2])
    assert got[3] == pytest.approx(1e4 + math.log(33), rel=1e-7)


def test_layer_norm_keeps_the_digits_of_rows_far_from_zero(library, tmp_path) -> None:
    """Rows of mean 10^4 and deviation 1 come out as those of their exact values, where E[x^2] - E[x]^2 has no digit."""
    rng = np.random.default_rng(3)
    x = (1e4 + rng.standard_normal((3, 1000))).astype(np.float32)
    one, zero = np.ones(1000, dtype=np.float32), np.zeros(1000, dtype=np.float32)
    got = run_values(library("layer_norm"), tmp_path / "run", "layer_norm", x, one, zero, eps=1e-5)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert np.abs(got - expected).max() < 2e-6


def test_argmax_follows_torch_on_special_rows(library, tmp_path) -> None:
    """The first of equals, the first NaN before any infinity, index 0 of a row of minus infinity."""
    x = np.full((5, 70), -1.0, dtype=np.float32)
    x[0, [13, 29, 66]] = 4
    x[1, 20], x[1, [41, 69]] = np.inf, np.nan
    x[2] = -np.inf
    x[3, 69] = -0.5
    got = run_values(library("argmax"), tmp_path / "run", "argmax", x)
    assert got.tolist() == [13, 41, 0, 69, 0]
    assert got.tolist() == torch.from_numpy(x).argmax(-1).tolist()
