"""The suites beside the starter one: names, sizes, sound records, and what an author is told."""

from __future__ import annotations

import numpy as np
import pytest

from device.errors import DeviceError, UnknownOperator, UnknownSuite
from device.operators import SUITES, get, names, reference_source
from device.operators.check import problems
from device.operators.npukernelbench import level1, level2

LEVEL1 = [name for name in names("npukernelbench") if get(name).level == 1]
LEVEL3 = [name for name in names("npukernelbench") if get(name).level == 3]
FUSED = list(names("fused"))
OWN = [*LEVEL1, *LEVEL3, *FUSED]


def test_the_starter_suite_is_the_default_and_comes_first() -> None:
    """Twelve operators unless another suite is asked for; all of them are found by name."""
    assert names() == names("starter") == names("all")[:12]
    assert len(names()) == 12
    assert set(names("all")) == {name for suite in SUITES[:-1] for name in names(suite)}
    assert len(set(names("all"))) == sum(len(names(suite)) for suite in SUITES[:-1])
    assert all(get(name).name == name for name in names("all"))


def test_the_suites_hold_the_benchmarks_names() -> None:
    """Twenty operators of level 1, the benchmark's eighteen of level 3, eighteen fused ones."""
    assert level1.MODULES
    assert isinstance(level2.MODULES, tuple)
    assert len(LEVEL1) == 20
    assert set(LEVEL3) == {
        *("BasicMatmul", "BatchedMatmul", "FlashAttentionScoreWithLargeHeadDim", "Gemm", "Gemv", "GroupGemm"),
        *("GroupedMatmulSliceK", "GroupedMatmulSliceKPerTokenDequant", "GroupedMatmulSliceM"),
        *("GroupedMatmulSliceMPerTokenDequant", "MatmulAdd", "MatmulBias", "Mla", "OptimizedMatmul", "PaddingMatmul"),
        *("QuantMatmul", "SplitkMatmul", "TopKV3"),
    }
    assert len(FUSED) == 18
    assert all(get(name).level == 4 for name in FUSED)


def test_an_unknown_suite_or_operator_is_refused_with_names_that_look_alike() -> None:
    """Close names are found whatever their case, and a suite's error lists all suites."""
    with pytest.raises(UnknownSuite, match="starter, npukernelbench, fused, all") as suite:
        names("level9")
    assert isinstance(suite.value, DeviceError)
    with pytest.raises(UnknownOperator) as caught:
        get("isfinite")
    assert "IsFinite" in caught.value.close


@pytest.mark.parametrize("name", OWN)
def test_an_operator_agrees_with_itself(name) -> None:
    """Declared outputs, reference, baseline, names and hidden cases fit, in float64 and in the cases' own dtypes."""
    assert problems(get(name), seed=7) == ()


@pytest.mark.parametrize("name", OWN)
def test_an_author_is_told_what_matters(name) -> None:
    """Two traps or more, whole sentences; a reference and an expert that stand alone; full sizes beside the small."""
    operator = get(name)
    assert len(operator.traps) >= 2
    assert all(text.endswith(".") for text in (*operator.traps, *operator.conditions))
    assert operator.summary.endswith(".")
    assert reference_source(operator).startswith("def ")
    assert operator.expert is None or '#include "../' not in operator.expert
    assert operator.full_cases
    used = {spec.dtype for case in operator.cases for spec in case.inputs}
    assert used <= set(operator.dtypes)


@pytest.mark.parametrize("name", LEVEL1)
def test_every_operator_of_level_1_has_an_expert(name) -> None:
    """The expert is one text with the entry point in it."""
    assert "sagebook_kernel(" in (get(name).expert or "")


@pytest.mark.parametrize("name", OWN)
def test_hidden_cases_follow_the_seed(name) -> None:
    """The same seed draws the same cases, another one others."""
    operator = get(name)
    first, again, other = (operator.hidden_cases(np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
