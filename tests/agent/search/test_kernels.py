"""Composed kernels really compute: sampled choices compile and agree with numpy on tails, strides and broadcasts."""

from __future__ import annotations

import ctypes
import math
import random
import subprocess

import numpy as np
import pytest

from agent.models.search import prelude, space
from agent.models.search.translate import translate
from tests.agent.search.harness import FLAGS, bundled, card, compiled_all, composed, kernel

SOUND = {
    "softmax_shift": ("max", "online"), "variance": ("two_pass", "shifted"), "eps": ("inside_root",), "ties": ("first",),
    "nan": ("propagate",), "tail": ("scalar", "padded", "masked"), "layout": ("general", "fast_path"), "cdf": ("erfc",),
    "fast_math": ("off",),
}  # fmt: skip
"""Of the decisions that can make a kernel wrong, the values that do not."""


def sampled(about, count, *, seed, fixed=None):
    """Sources for `count` sound combinations of choices, half of them with explicit vectors."""
    rng = random.Random(seed)
    sources = []
    for turn in range(count):
        wanted = {d.name: rng.choice(SOUND.get(d.name, d.values)) for d in space.DIMENSIONS}
        wanted |= {"layout": "fast_path", "simd": "vector"} if turn % 2 else {}
        sources.append(composed(about, wanted | (fixed or {}))[2])
    return sources


def views(rng, rows, columns):
    """Dense, transposed, and sliced arrays of one shape."""
    yield rng.normal(size=(rows, columns)).astype(np.float32)
    yield rng.normal(size=(columns, rows)).astype(np.float32).T
    yield rng.normal(size=(rows, columns + 3)).astype(np.float32)[:, :columns]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def phi(x):
    return 0.5 * np.vectorize(math.erfc)(-x / math.sqrt(2))


ROWS = {
    "softmax": softmax,
    "gelu": lambda x: x * phi(x),
    "swiglu": lambda x: x[:, : x.shape[1] // 2] / (1 + np.exp(-x[:, : x.shape[1] // 2])) * x[:, x.shape[1] // 2 :],
    "transpose": np.transpose,
    "argmax": lambda x: x.argmax(-1),
    "logsumexp": lambda x: np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1),
}


@pytest.mark.parametrize("name", ROWS)
def test_sampled_choices_agree_with_numpy(name, tmp_path):
    """Whatever sound choices a kernel of one input is composed from, its result is the definition's."""
    rng = np.random.default_rng(3)
    dtype = "int64" if name == "argmax" else "float32"
    inputs = [x for columns in (38, 600) for x in views(rng, 5, columns)]
    expected = [ROWS[name](x.astype(np.float64)) for x in inputs]
    calls = [([x], y.shape, dtype, []) for x, y in zip(inputs, expected, strict=True)]
    for made in compiled_all(sampled(bundled(name), 2, seed=name), tmp_path):
        for got, wanted in zip(made.run_all(calls), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=3e-6, err_msg=made.source[:600])


def test_layer_norm_takes_its_rows_scale_shift_and_epsilon(tmp_path):
    """Three inputs of different rank and an attribute meet in one row."""
    rng = np.random.default_rng(4)
    gamma, beta = rng.normal(size=(2, 77)).astype(np.float32)
    inputs = list(views(rng, 3, 77))
    calls = [([x, gamma, beta], x.shape, "float32", [0.1]) for x in inputs]
    for made in compiled_all(sampled(bundled("layer_norm"), 2, seed=1), tmp_path):
        for got, x in zip(made.run_all(calls), inputs, strict=True):
            wide = x.astype(np.float64)
            expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 0.1) * gamma + beta
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=made.source[:600])


def test_broadcasting_stretches_axes_of_size_one(tmp_path):
    """Two inputs of any shapes that broadcast meet element by element."""
    rng = np.random.default_rng(5)
    made = kernel(
        bundled("add"), {"layout": "fast_path", "simd": "vector", "tail": "masked", "threads": "rows"}, tmp_path
    )
    for shapes in (((3, 5, 31), (5, 1)), ((19, 1), (1, 45)), ((1,), (1,)), ((33,), (4, 33))):
        a, b = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
        np.testing.assert_array_equal(made.run([a, b], (a + b).shape), a + b)


@pytest.mark.parametrize("tile", ["none", "8x2"])
def test_products_with_their_epilogue(tile, tmp_path):
    """Plain loops and register tiles give the same product, bias and activation, at sizes that no tile divides."""
    rng = np.random.default_rng(6)
    fixed = {"register_tile": tile} if tile != "none" else {"register_tile": "none", "layout": "general"}
    calls, expected = [], []
    for m, k, n in ((33, 65, 37), (1, 130, 70)):
        for a in views(rng, m, k):
            b, bias = rng.normal(size=(n, k)).astype(np.float32).T, rng.normal(size=n).astype(np.float32)
            y = a.astype(np.float64) @ b + bias
            calls.append(([a, b, bias], (m, n), "float32", []))
            expected.append(y * phi(y))
    for made in compiled_all(sampled(bundled("matmul_bias_gelu"), 2, seed=tile, fixed=fixed), tmp_path):
        for got, wanted in zip(made.run_all(calls), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5, err_msg=made.source[:600])


def test_attention_over_tails_and_views(tmp_path):
    """Materialized and online, with and without vectors, attention is softmax(q k^T / sqrt d) v."""
    rng = np.random.default_rng(7)
    k, v = rng.normal(size=(19, 300)).astype(np.float32).T * 5, rng.normal(size=(300, 19)).astype(np.float32)
    queries = list(views(rng, 13, 19))
    calls = [([q, k, v], (13, 19), "float32", []) for q in queries]
    for made in compiled_all(sampled(bundled("attention"), 4, seed=2), tmp_path):
        for got, q in zip(made.run_all(calls), queries, strict=True):
            expected = softmax(q.astype(np.float64) @ k.T / math.sqrt(19)) @ v
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5, err_msg=made.source[:600])


def test_an_operator_that_no_one_tuned_for(tmp_path):
    """A reference of three tensors, an attribute and a reduction is composed like any other."""
    text = "def f(x, w, b, *, slope):\n  y = F.leaky_relu(x * w + b, slope)\n  return (y / y.norm(dim=-1, keepdim=True),)\n"
    about = card("scaled", text, attributes=("slope",))
    made = kernel(about, {"layout": "fast_path", "simd": "vector", "tail": "padded", "accumulators": "2"}, tmp_path)
    x, w, b = np.random.default_rng(8).normal(size=(3, 6, 45)).astype(np.float32)
    y = x * w[0] + b[:, :1]
    y = np.where(y > 0, y, 0.1 * y)
    expected = y / np.sqrt((y * y).sum(-1, keepdims=True))
    got = made.run([x, w[0], b[:, :1]], x.shape, attributes=[0.1])
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_polynomials_are_as_exact_as_they_say(tmp_path):
    """Exp is within 2 units of the last place, erf and erfc within their stated relative errors; NaN and infinity pass."""
    names = ("exp_poly", "erf_poly", "erfc_poly", "tanh_poly", "log_poly")
    text = "#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <cstring>\nnamespace {\n"
    text += prelude.helpers(names, vector=True, lanes="16") + "}\n"
    for name in names:
        text += f'extern "C" void run_{name}(const float *x, float *y, int64_t n) {{\n'
        text += f"  for (int64_t i = 0; i < n; i += 16) store(y + i, {name}(load(x + i)));\n}}\n"
    file = tmp_path / "poly.cpp"
    file.write_text(text)
    subprocess.run(["g++", *FLAGS, str(file), "-o", str(tmp_path / "poly.so")], check=True)
    library = ctypes.CDLL(str(tmp_path / "poly.so"))

    def run(name, x):
        x = np.resize(x.astype(np.float32), -(-len(x) // 16) * 16)
        y = np.empty_like(x)
        pointers = (x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p))
        getattr(library, f"run_{name}")(*pointers, ctypes.c_int64(len(x)))
        return x.astype(np.float64), y

    exact = {
        "exp_poly": (np.exp, -86, 88, 2.4e-7), "erf_poly": (np.vectorize(math.erf), -5, 5, 5e-7),
        "erfc_poly": (np.vectorize(math.erfc), -5, 4.4, 1.3e-6), "tanh_poly": (np.tanh, -9, 9, 5e-7),
        "log_poly": (np.log, 0.1, 900, 4e-7),
    }  # fmt: skip
    for name, (function, low, high, bound) in exact.items():
        x, y = run(name, np.linspace(low, high, 4000))
        np.testing.assert_allclose(y, function(x), rtol=bound, atol=1e-9, err_msg=name)
    _, edges = run("exp_poly", np.array([np.inf, -np.inf, np.nan, 100.0, -200.0, 0.0]))
    np.testing.assert_array_equal(edges[:6], [np.inf, 0.0, np.nan, np.inf, 0.0, 1.0])


def test_the_families_cover_what_the_suite_has():
    """No bundled operator is without an emitter: plain choices compose a source that names its operator."""
    for name in ("add", "transpose", "softmax", "matmul", "attention"):
        program = translate(bundled(name))
        assert f"// {name}:" in composed(bundled(name), {})[2]
        assert program.n_inputs >= 1
