"""Problems that would refuse honest kernels are left out, and only those."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from device import oracle
from device.operators import get
from device.operators.base import Case

SATURATED = 3006
"""A seed under which inputs of 30 saturate every row of `tail`: the gradients for q and k are 1e-57 beside them."""


def test_an_output_that_is_the_residue_of_its_inputs_asks_nothing_fair() -> None:
    """Of a saturated attention's gradient rounding leaves anything or nothing; as given the same case is judged."""
    operator = get("FlashAttentionGrad")
    case = next(c for c in operator.cases if c.name == "tail")
    assert oracle.pose(operator, case, SATURATED, "x30", "hardened") is None
    assert oracle.pose(operator, case, SATURATED, "given", "hardened") is not None
    assert oracle.pose(operator, case, SATURATED, "x0.01", "hardened") is not None


@pytest.mark.parametrize("name", ["softmax", "rms_norm", "layer_norm", "gelu", "matmul"])
def test_most_problems_of_an_operator_stay(name: str) -> None:
    """Small answers of small inputs, and probabilities that add up to one, are no residue."""
    suite = oracle.Oracle().suite(get(name), 11, "hardened", "hardened")
    assert len(suite.problems) > 10 * len(suite.left_out)
    assert any(problem.name.endswith("/x0.01") for problem in suite.problems)


@pytest.mark.parametrize(("distribution", "seed"), [("x3", 10), ("+10", 3), ("x30", 10)])
def test_terms_that_cancel_count_in_the_condition(distribution: str, seed: int) -> None:
    """Moved inputs alone do not show them: without the sizes a problem stays that would refuse an honest kernel."""
    operator = get("FlashAttentionGrad")
    case = next(c for c in operator.cases if c.name == "one-query")
    assert oracle.pose(operator, case, seed, distribution, "hardened") is None
    assert oracle.pose(replace(operator, magnitudes=None), case, seed, distribution, "hardened") is not None


@pytest.mark.parametrize("case", get("FlashAttentionGrad").cases, ids=lambda case: case.name)
def test_no_answer_is_larger_than_its_terms(case: Case) -> None:
    """The size of terms bounds their difference, element by element."""
    operator = get("FlashAttentionGrad")
    rng = np.random.default_rng(7)
    inputs = [oracle.widened(oracle.tensor(oracle.draw(spec, rng), spec)) for spec in case.inputs]
    assert operator.magnitudes is not None
    for gradient, size in zip(operator.reference(*inputs), operator.magnitudes(*inputs), strict=True):
        assert bool((gradient.abs() <= size * (1 + 1e-12)).all())
