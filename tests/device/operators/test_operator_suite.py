"""The records of the suite: what a specification refuses, how an operator is found, what its texts hold."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from device.errors import DeviceError, InvalidOperator, UnknownOperator
from device.operators import Case, TensorSpec, get, names, reference_source
from device.operators.check import bound, draw, problems
from device.operators.forms import broadcast, hidden_rows, odd, padded, prime, swapped, tail
from device.operators.values import settle


def test_the_suite_is_ordered_by_level() -> None:
    """Twelve operators, simple ones first, so that a campaign may take them as they come."""
    assert names() == (
        *("add", "gelu", "transpose", "argmax"),
        *("swiglu", "softmax", "layer_norm", "rms_norm", "logsumexp"),
        *("matmul", "matmul_bias_gelu", "attention"),
    )
    assert [get(name).level for name in names()] == [1] * 4 + [2] * 5 + [3] * 3


def test_an_unknown_operator_is_refused_with_names_that_look_alike() -> None:
    """The error carries the name and close matches, and its text says how to see all."""
    with pytest.raises(UnknownOperator, match=r"soft_max.*softmax.*sagebook device operators") as caught:
        get("soft_max")
    assert isinstance(caught.value, DeviceError)
    assert caught.value.name == "soft_max"
    assert "softmax" in caught.value.close


def test_looking_up_operators_loads_neither_torch_nor_numpy() -> None:
    """The command line lists operators without waiting for torch; only a reference that runs loads it."""
    code = (
        "import sys, device.operators as o; [o.reference_source(o.get(n)) + (o.get(n).expert or '') for n in o.names()];"
        "print([m for m in ('torch', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", names())
def test_an_operator_agrees_with_itself(name) -> None:
    """Declared outputs, reference, baseline, case names and hidden cases fit, in float32 and float64."""
    assert problems(get(name), seed=3) == ()


@pytest.mark.parametrize("name", names())
def test_an_author_is_told_what_matters(name) -> None:
    """Each operator names its traps, and its texts stand alone: a whole reference, an expert in one piece."""
    operator = get(name)
    assert len(operator.traps) >= 2
    assert all(trap.endswith(".") for trap in operator.traps)
    assert reference_source(operator).startswith("def reference(")
    assert operator.expert is not None
    assert '#include "../' not in operator.expert
    assert operator.expert.count("constexpr int64_t W =") == (1 if "vfloat" in operator.expert else 0)


@pytest.mark.parametrize("name", names())
def test_hidden_cases_differ_from_seed_to_seed_and_from_the_visible_ones(name) -> None:
    """The same seed draws the same cases, another one others, and few shapes are known to an author."""
    operator = get(name)
    first, again, other = (operator.hidden_cases(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    visible = {case.inputs for case in operator.cases}
    assert sum(case.inputs in visible for case in first) <= 1


def test_a_contradiction_in_an_operator_is_found() -> None:
    """A wrong baseline, wrong output shapes, a repeated hidden name and a missing expert are each reported."""
    gelu = get("gelu")
    doubled = replace(gelu, baseline=lambda x: (2 * x,))
    assert any("reference and baseline differ by" in problem for problem in problems(doubled))
    flat = replace(gelu, outputs=lambda case: (TensorSpec((1,)),))
    assert any("declared is [1]" in problem for problem in problems(flat))
    twin = Case("same", (TensorSpec((3,)),), hidden=True)
    assert any("share a name" in problem for problem in problems(replace(gelu, hidden_cases=lambda rng: (twin, twin))))
    seen = replace(gelu, hidden_cases=lambda rng: (Case("seen", (TensorSpec((3,)),)),))
    assert any("not marked hidden" in problem for problem in problems(seen))
    lost = replace(gelu, expert_file=gelu.expert_file.with_name("nowhere.cpp"))
    assert any("nowhere.cpp is missing" in problem for problem in problems(lost))
    two = replace(gelu, baseline=lambda x: (x, x))
    assert any("1 outputs declared" in problem for problem in problems(two))


def test_rounding_bound_grows_with_the_summed_length() -> None:
    """A softmax row of 64 allows 2^-23 * (8 + 4 * 8) where no output exceeds one."""
    case = Case("row", (TensorSpec((1, 64)),))
    assert bound(get("softmax"), case, "float32", np.array([0.5])) == 40 * 2.0**-23


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (3, 0)}, "at least 1"),
        ({"shape": (3,), "dtype": "float31"}, "float31"),
        ({"shape": (3, 4), "strides": (1,)}, "one number an axis"),
        ({"shape": (3,), "strides": (-1,)}, "not be negative"),
        ({"shape": (3,), "values": "odd"}, "odd"),
    ],
)
def test_an_impossible_tensor_is_refused(change, message) -> None:
    """The error names the tensor and what is wrong with it."""
    with pytest.raises(InvalidOperator, match=message):
        TensorSpec(**change)


def test_an_impossible_case_or_operator_is_refused() -> None:
    """Names, timing, hiding and attributes are checked when the record is made."""
    spec = (TensorSpec((3,)),)
    with pytest.raises(InvalidOperator, match="a name matches"):
        Case("Two words", spec)
    with pytest.raises(InvalidOperator, match="at least one input"):
        Case("empty", ())
    with pytest.raises(InvalidOperator, match="never timed"):
        Case("both", spec, timed=True, hidden=True)
    gelu = get("gelu")
    for change, message in (
        ({"name": "2gelu"}, "a name matches"),
        ({"level": 7}, "level 7"),
        ({"cases": gelu.cases * 2}, "share a name"),
        ({"cases": gelu.cases[2:]}, "must be timed"),
        ({"cases": (*gelu.cases, Case("secret", spec, hidden=True))}, "hidden_cases"),
        ({"attributes": ("eps",)}, r"attributes must be \['eps'\]"),
        ({"dtypes": ("float31",)}, "float31"),
    ):
        with pytest.raises(InvalidOperator, match=message):
            replace(gelu, **change)


def test_layout_and_storage_of_a_tensor() -> None:
    """A [2, 3, 4] tensor steps by 12, 4 and 1; its transposed and padded views reach as far as their last element."""
    dense = TensorSpec((2, 3, 4))
    assert (dense.layout, dense.contiguous, dense.elements, dense.storage) == ((12, 4, 1), True, 24, 24)
    turned = swapped((2, 3, 4))
    assert (turned.layout, turned.contiguous, turned.storage) == ((12, 1, 3), False, 24)
    sliced = padded((2, 4), 3)
    assert (sliced.layout, sliced.contiguous, sliced.elements, sliced.storage) == ((7, 1), False, 8, 11)
    assert TensorSpec((1, 5), strides=(99, 1)).contiguous
    assert TensorSpec((), "int64").storage == 1
    assert TensorSpec((3, 4), strides=(0, 1)).overlapping
    assert TensorSpec((3, 4), strides=(2, 1)).overlapping
    assert not turned.overlapping
    assert not sliced.overlapping


def test_a_case_reads_as_one_line() -> None:
    """Prompts and listings show shapes, strides that are not dense, attributes and timing."""
    case = Case("sliced", (padded((8, 99)), TensorSpec((99,))), {"eps": 1e-5}, timed=True)
    assert case.line == "sliced: float32[8, 99] strides [102, 1], float32[99], eps=1e-05 (timed)"


def test_shapes_broadcast_as_in_torch() -> None:
    """Aligned at the last axis, 1 stretches; 3 against 4 is refused by name."""
    assert broadcast((5, 1, 4), (3, 1)) == (5, 3, 4)
    assert broadcast((1,), ()) == (1,)
    with pytest.raises(InvalidOperator, match=r"\[3, 4\] do not broadcast"):
        broadcast((3,), (4,))


def test_drawn_sizes_are_what_they_are_called() -> None:
    """Odd, prime and off-by-one sizes stay within their range."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert odd(rng, 3, 9) in {3, 5, 7, 9}
        assert prime(rng, 90, 110) in {97, 101, 103, 107, 109}
        assert tail(rng, 16, 2, 3) in {31, 33, 47, 49}
    assert all(case.inputs[0].shape[-1] % 2 == 0 for case in hidden_rows(rng, multiple=2))


def test_special_values_are_put_into_an_input() -> None:
    """Ties keep at most five different numbers, nans make about one in fifty NaN, any leaves the draw alone."""
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((10, 100))
    assert len(np.unique(settle(TensorSpec((10, 100), values="ties"), drawn, rng))) == 5
    assert np.isnan(settle(TensorSpec((10, 100), values="nans"), drawn, rng)).sum() == 20
    assert settle(TensorSpec((10, 100)), drawn, rng) is drawn
    assert not np.isnan(drawn).any()


def test_a_drawn_input_has_the_layout_of_its_specification() -> None:
    """A transposed view is drawn with its own strides, in bytes of float32."""
    assert draw(swapped((3, 5)), np.random.default_rng(0)).strides == (4, 12)
