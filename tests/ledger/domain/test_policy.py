"""The policy: presets, subsets of fields, and a refusal for each field that is wrong."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ledger.domain.policy import PRESETS, SAGE, Policy, from_mapping, preset
from ledger.errors import PolicyError

DESIGN = {
    "failure_score": -0.1,
    "non_adoption_feedback": -0.2,
    "value_bounds": (-0.1, 1.0),
    "alpha_min": 0.05,
    "credit": "adopted_split",
    "pool_size": 30,
    "min_adoptions": 3,
    "min_operators": 3,
    "budget_tokens": 10_000,
    "beta": 0.1,
    "consolidation": "utility",
    "top_n": 8,
}
DIFFERS: dict[str, dict[str, Any]] = {
    "sage": {},
    "paper": {"failure_score": -0.2, "value_bounds": (-0.2, 1.0)},
    "value-memory": {"credit": "uniform", "consolidation": "none"},
    "static-rag": {"credit": "none", "consolidation": "none", "open_to_experiences": False},
    "refinement": {"credit": "none", "consolidation": "none", "open_to_experiences": False, "retrieval": False},
    "no-consolidation": {"consolidation": "none"},
    "random-resident": {"consolidation": "random"},
    "uniform-credit": {"credit": "uniform"},
}


def test_the_default_is_the_table_of_the_design() -> None:
    """Every number of the default preset, written out."""
    assert {name: getattr(SAGE, name) for name in DESIGN} == DESIGN
    assert Policy() == SAGE == preset("sage")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_differs_from_the_default_in_what_it_is_for(name: str) -> None:
    """Each preset changes the fields that its name promises, and no other."""
    fields = SAGE.to_mapping()
    assert {k: v for k, v in preset(name).to_mapping().items() if v != fields[k]} == DIFFERS[name]


def test_there_are_no_presets_but_those_described() -> None:
    """A new preset comes with its line above."""
    assert set(PRESETS) == set(DIFFERS)


def test_an_unknown_preset_is_refused_with_a_close_name() -> None:
    """A misspelt preset is told which one it may have been, and which there are."""
    with pytest.raises(
        PolicyError, match=r"'value-memry'; did you mean 'value-memory'\? presets: sage, paper"
    ) as caught:
        preset("value-memry")
    assert caught.value.facts == {"preset": "value-memry"}


def test_a_subset_of_fields_stands_over_the_default() -> None:
    """Fields that are given hold; the rest are those of `sage`; a whole number does for a fraction."""
    assert from_mapping({"beta": 1, "value_bounds": [-1, 0.5]}) == Policy(beta=1.0, value_bounds=(-1.0, 0.5))
    assert from_mapping({}) == SAGE


def test_a_policy_reads_back_from_its_mapping() -> None:
    """What the log and the API show of a policy is enough to make it again."""
    for policy in PRESETS.values():
        assert from_mapping(policy.to_mapping()) == policy


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("failure_score", "low", "Expected `float`"),
        ("failure_score", math.nan, "finite"),
        ("non_adoption_feedback", -math.inf, "finite"),
        ("non_adoption_feedback", None, "Expected `float`"),
        ("value_bounds", [0.1, 1.0], "must hold 0"),
        ("value_bounds", [-0.1, -0.05], "must hold 0"),
        ("value_bounds", [0.0, 0.0], "must hold 0"),
        ("value_bounds", [1.0, -1.0], "must hold 0"),
        ("value_bounds", [-0.1], "length 2"),
        ("value_bounds", [-0.1, math.inf], "finite"),
        ("alpha_min", 0.0, "above 0"),
        ("alpha_min", 1.01, "at most 1"),
        ("alpha_min", math.nan, "finite"),
        ("min_adoptions", -1, "not be negative"),
        ("min_adoptions", True, "Expected `int`"),
        ("min_operators", -1, "not be negative"),
        ("min_operators", 2.5, "Expected `int`"),
        ("budget_tokens", -1, "not be negative"),
        ("budget_tokens", 2**63, "64 bits"),
        ("beta", -0.1, "from 0 to 1"),
        ("beta", 1.1, "from 0 to 1"),
        ("credit", "fair", "one of adopted_split, uniform, none"),
        ("consolidation", "all", "one of utility, random, none"),
        ("pool_size", 0, "at least 1"),
        ("top_n", 0, "at least 1"),
        ("value_weight", -1.0, "not be negative"),
        ("retrieval", 1, "Expected `bool`"),
        ("open_to_experiences", "no", "Expected `bool`"),
        ("resident_seed", "x", "Expected `int`"),
        ("holdout_rate", 1.0, "below 1"),
        ("holdout_rate", -0.1, "from 0"),
        ("holdout_seed", 0.5, "Expected `int`"),
    ],
)
def test_a_wrong_field_is_refused_by_name(field: str, value: object, why: str) -> None:
    """The refusal names the field, what it was, and what it may be."""
    with pytest.raises(PolicyError, match=why) as caught:
        from_mapping({field: value})
    assert caught.value.facts["field"] == field
    assert f"policy field {field!r} is" in caught.value.message


def test_every_field_is_refused_when_it_is_wrong() -> None:
    """No field takes just anything."""
    for field in SAGE.to_mapping():
        with pytest.raises(PolicyError) as caught:
            from_mapping({field: {"a": "mapping"}})
        assert caught.value.facts["field"] == field


def test_an_unknown_field_is_refused_with_a_close_name() -> None:
    """A misspelt field would otherwise leave the default in force without a word."""
    with pytest.raises(PolicyError, match="'alfa_min' is unknown; did you mean 'alpha_min'") as caught:
        from_mapping({"beta": 0.2, "alfa_min": 0.1})
    assert caught.value.facts == {"field": "alfa_min"}
    with pytest.raises(PolicyError, match="'colour' is unknown; fields: failure_score, "):
        from_mapping({"colour": "red"})
