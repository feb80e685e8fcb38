"""Problems that would refuse honest kernels are left out, and only those."""

from __future__ import annotations

import pytest

from device import oracle
from device.operators import get

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
