"""Reading a torch reference: what it computes is found out from its text alone, or refused by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.errors import ModelError
from agent.models.search import rows, space
from agent.models.search.errors import NoRecipe
from agent.models.search.ir import Apply, Attribute, Const, Input, Length, MatMul, Node, Recipe, Reduce, ViewStep
from agent.models.search.translate import translate
from tests.agent.search.harness import bundled, card

FAMILIES = {
    "add": "elementwise", "gelu": "elementwise", "transpose": "layout", "argmax": "reduction", "swiglu": "elementwise",
    "softmax": "reduction", "layer_norm": "reduction", "rms_norm": "reduction", "logsumexp": "reduction",
    "matmul": "matmul", "matmul_bias_gelu": "matmul", "attention": "attention",
}  # fmt: skip

POINTWISE = [
    "relu(x)", "sigmoid(x)", "silu(x)", "tanh(x)", "softplus(x)", "hardswish(x)", "mish(x)", "elu(x)", "selu(x)",
    "leaky_relu(x, 0.2)", "softsign(x)", "relu6(x)", "hardsigmoid(x)", "gelu(x, approximate='tanh')", "gelu(x)",
    "logsigmoid(x)", "hardtanh(x)", "tanhshrink(x)", "softshrink(x, 0.3)", "celu(x, 1.5)",
]  # fmt: skip


def evaluate(node: Node, arrays: list[np.ndarray]) -> np.ndarray:  # noqa: PLR0911  (one return for each kind of node)
    """What a pointwise or row tree is worth, by numpy; independent of the C++ that is printed from it."""
    unary = {
        "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "tanh": np.tanh,
        "neg": np.negative, "abs": np.abs, "rsqrt": lambda a: 1 / np.sqrt(a), "not": np.logical_not,
        "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "trunc": np.trunc,
    }  # fmt: skip
    binary = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "lt": np.less, "le": np.less_equal,
        "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "or": np.logical_or,
        "and": np.logical_and, "pow": np.power,
    }  # fmt: skip
    match node:
        case Input(index=index):
            return arrays[index]
        case Const(value):
            return np.float64(value)
        case Apply("where", (condition, yes, no)):
            return np.where(*(evaluate(at, arrays) for at in (condition, yes, no)))
        case Apply(op, (a,)):
            return unary[op](evaluate(a, arrays))
        case Apply(op, (a, b)):
            return binary[op](evaluate(a, arrays), evaluate(b, arrays))
        case Reduce(kind, arg):
            return getattr(np, kind)(evaluate(arg, arrays), axis=-1, keepdims=True)
        case Length():
            return np.float64(arrays[0].shape[-1])
        case _:
            raise AssertionError(node)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_bundled_reference_is_understood(name):
    """The twelve operators are read from their references, loops over rows included, and fall into their families."""
    assert space.traits_of(translate(bundled(name))).family == FAMILIES[name]


@pytest.mark.parametrize("call", POINTWISE)
def test_activations_that_no_one_tuned_for_mean_what_torch_means(call):
    """A pointwise torch function in a reference becomes a formula with torch's values on both sides of zero."""
    torch = pytest.importorskip("torch")
    x = torch.linspace(-30, 30, 601, dtype=torch.float64)
    expected = eval(f"torch.nn.functional.{call}", {"torch": torch, "x": x})  # noqa: S307  (the table above)
    program = translate(card("unseen", f"def reference(x):\n    return (F.{call},)\n"))
    with np.errstate(all="ignore"):
        got = evaluate(rows.lower(program.root, {"cdf": "erfc"}), [x.numpy()])
    np.testing.assert_allclose(got, expected.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("torch.addcmul(x, y, y, value=0.5)", lambda x, y: x + 0.5 * y * y),
        ("torch.lerp(x, y, 0.25)", lambda x, y: x + 0.25 * (y - x)),
        ("torch.where(x > y, x, -y)", lambda x, y: np.where(x > y, x, -y)),
        ("(x > 0) * y", lambda x, y: (x > 0) * y),
        ("x.clamp(min=-1, max=1) ** 2", lambda x, y: np.clip(x, -1, 1) ** 2),
        ("torch.softmin(x, dim=-1)", lambda x, y: np.exp(-x) / np.exp(-x).sum(-1, keepdims=True)),
        ("x / x.norm(dim=-1, keepdim=True)", lambda x, y: x / np.sqrt((x * x).sum(-1, keepdims=True))),
        ("x.var(dim=-1, unbiased=False, keepdim=True)", lambda x, y: x.var(-1, keepdims=True)),
        ("x.log_softmax(-1)", lambda x, y: x - np.log(np.exp(x).sum(-1, keepdims=True))),
        ("(x * y).sum(dim=-1, keepdim=True)", lambda x, y: (x * y).sum(-1, keepdims=True)),
    ],
)
def test_expressions_of_two_tensors(body, expected):
    """Arithmetic, comparisons, keyword arguments and reductions keep their meaning."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 7)), rng.normal(size=(4, 7))
    program = translate(card("unseen", f"def reference(x, y):\n    z = {body}\n    return (z,)\n"))
    np.testing.assert_allclose(evaluate(rows.lower(program.root, {}), [x, y]), expected(x, y), rtol=1e-9, atol=1e-12)


def test_a_spelled_out_softmax_is_the_named_one():
    """`e = exp(x - max); e / e.sum()` is recognised, so that it can be computed in the other ways as well."""
    text = "def f(x):\n  e = (x - x.amax(dim=-1, keepdim=True)).exp()\n  return (e / e.sum(dim=-1, keepdim=True),)\n"
    assert translate(card("unseen", text)).root == Recipe("softmax", (Input(0, "x"),))


def test_halves_of_the_last_axis_are_views_of_one_input():
    """`chunk(2, -1)` moves no data: both parts are seen in the same input."""
    program = translate(card("unseen", "def f(x):\n  a, b = x.chunk(2, dim=-1)\n  return (a * b,)"))
    left, right = program.root.args
    assert left == Input(0, "x", (ViewStep("part", 0, 2),))
    assert right == Input(0, "x", (ViewStep("part", 1, 2),))


def test_a_product_written_row_by_row_is_a_matrix_product():
    """`out[i] = (a[i, :, None] * b).sum(0)` in a loop over i is a @ b."""
    text = (
        "def f(a, b):\n  out = a.new_empty((a.shape[0], b.shape[1]))\n  for i in range(a.shape[0]):\n"
        "    out[i] = (a[i, :, None] * b).sum(dim=0)\n  return (out,)\n"
    )
    assert translate(card("unseen", text)).root == MatMul(Input(0, "a"), Input(1, "b"))


def test_attributes_are_told_from_inputs_by_the_card():
    """A keyword that the card lists as an attribute is read from the attribute array, not from an input."""
    program = translate(card("scale", "def f(x, *, factor):\n  return (x * factor,)", attributes=("factor",)))
    assert program.root == Apply("mul", (Input(0, "x"), Attribute(0, "factor")))
    assert program.n_inputs == 1


@pytest.mark.parametrize(
    ("reference", "missing"),
    [
        ("def f(x):\n  return (torch.linalg.qr(x)[0],)", "qr"),
        ("def f(x):\n  return (x.sort(dim=-1),)", "sort"),
        ("def f(x):\n  return (x + 1, x - 1)", "2 outputs"),
        ("def f(x):\n  return (x - x.mean(dim=-1),)", "keepdim"),
        ("def f(x):\n  return (x.sum(),)", "all axes"),
        ("def f(x):\n  if x.sum() > 0:\n    return (x,)\n  return (-x,)", "if"),
        ("def f(x", "parsed"),
    ],
)
def test_what_has_no_recipe_is_refused_by_name(reference, missing):
    """A reference that can not be composed is refused with what is missing, never answered with another kernel."""
    with pytest.raises(NoRecipe, match=missing) as refused:
        translate(card("strange", reference))
    assert refused.value.operator == "strange"
    assert isinstance(refused.value, ModelError)
