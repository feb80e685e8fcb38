"""The hold-out interval: it holds its level for the scores that stages have, and agrees with exact methods."""

from __future__ import annotations

import pytest
from scipy.stats import beta, fisher_exact

from benchmarks.holdout import LAWS, PAIRS, coverage, passes
from ledger.audit.statistics import LEAST_STAGES, interval, uplift
from ledger.domain.holdout import Arms

BOUNDS = (0.0, 1.0)


@pytest.mark.parametrize("sizes", [(LEAST_STAGES, LEAST_STAGES), (5, 60), (12, 12)], ids=str)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].name} - {pair[1].name}")
def test_the_interval_holds_the_true_difference_in_95_of_100_cases(pair, sizes) -> None:
    """150 made-up libraries a case; by chance alone a level of exactly 95 % would fall below 91 % once in 60."""
    assert coverage(pair, sizes, 150, beside=False)["melded"] >= 0.95


def test_a_bootstrap_would_not_have_held_it() -> None:
    """The simulation can tell: of 5 against 40 stages that pass nine times in ten, a bootstrap misses a third."""
    found = coverage((passes(0.9), passes(0.9)), (5, 40), 100)
    assert found["bootstrap"] < 0.75
    assert found["melded"] >= 0.95


def test_the_laws_are_of_all_three_kinds() -> None:
    """Binary, mixed and continuous, so that none is left out of the level shown."""
    assert {law.kind for law in LAWS} == {"binary", "mixed", "continuous"}


@pytest.mark.parametrize(("wins", "of", "others", "others_of"), [(4, 4, 0, 4), (9, 10, 4, 9), (18, 20, 10, 20)])
def test_of_passes_and_failures_zero_is_left_out_where_fisher_s_exact_test_says_so(wins, of, others, others_of) -> None:
    """The lower limit is above 0 exactly where the one-sided test is below 2.5 %."""
    low, _ = interval([1.0] * wins + [0.0] * (of - wins), [1.0] * others + [0.0] * (others_of - others), BOUNDS)
    told = fisher_exact([[wins, of - wins], [others, others_of - others]], alternative="greater").pvalue
    assert (low > 0.0) == (told < 0.025)


def test_beside_many_sure_passes_the_limits_are_those_of_clopper_and_pearson() -> None:
    """Against 100,000 passes, 7 of 9 leave the interval of 7 of 9 less 1."""
    low, high = interval([1.0] * 7 + [0.0] * 2, [1.0] * 100_000, BOUNDS)
    assert low == pytest.approx(beta.ppf(0.025, 7, 3) - 1.0, abs=0.01)
    assert high == pytest.approx(beta.ppf(0.975, 8, 2) - 1.0, abs=0.01)


def test_arms_that_never_vary_are_no_certainty() -> None:
    """Six passes of six on both sides: the interval is wide and holds 0."""
    told = uplift(Arms("a", presented=[1.0] * 6, withheld=[1.0] * 6, bounds=(-0.1, 1.0)))
    assert told.low is not None
    assert told.high is not None
    assert told.low < -0.3 < 0.3 < told.high
    assert told.verdict.startswith("no difference shown")


def test_many_distinct_scores_are_merged_outward() -> None:
    """1,000 scores a side: the merged interval holds the one of Welch's t and is little wider."""
    many = [n / 1000 for n in range(1000)]
    low, high = interval(many, many, BOUNDS)
    assert low < -0.0253 < 0.0253 < high
    assert high - low < 0.075


def test_the_arms_swapped_are_the_interval_turned_round() -> None:
    """Up to the draws."""
    a, b = [0.0, 0.2, 1.0, 1.0, 1.0], [0.0, 0.0, 0.1, 0.4]
    low, high = interval(a, b, BOUNDS)
    assert interval(b, a, BOUNDS) == pytest.approx((-high, -low), abs=0.02)
