"""The statistics of the audit, through NumPy and SciPy, which are imported only where one of them is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger import wire
from ledger.domain.holdout import Arms

if TYPE_CHECKING:
    import numpy as np

LEAST_STAGES = 4
"""Scored stages that each arm needs before an interval is given.

The interval holds its level for any number; with three in each arm it can not leave out 0 whatever the scores are
(1 of 20 ways to part six stages), with four it can (1 of 70).
"""

CONFIDENCE = 0.95
_DRAWS = 10_000
_SEED = 20260101
_GROUPS = 100
"""Distinct scores of an arm that are told apart; more are merged outward, widening by 1/100 of the range at most."""


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's rank correlation; None below two items or where one side is constant."""
    if len(a) < 2 or len(set(a)) < 2 or len(set(b)) < 2:
        return None
    from scipy.stats import spearmanr  # noqa: PLC0415

    return float(spearmanr(a, b).statistic)


def difference(arms: Arms) -> float | None:
    """Mean stage score with the rule less without it; None where either arm has too few stages."""
    if min(len(arms.presented), len(arms.withheld)) < LEAST_STAGES:
        return None
    return sum(arms.presented) / len(arms.presented) - sum(arms.withheld) / len(arms.withheld)


def uplift(arms: Arms) -> wire.Uplift:
    """The difference of the two arms with its 95 % interval, or that there is not enough evidence."""
    with_rule, without = len(arms.presented), len(arms.withheld)
    told = wire.Uplift(
        experience=arms.experience,
        presented=with_rule,
        withheld=without,
        difference=difference(arms),
        low=None,
        high=None,
        verdict=f"not enough evidence: {with_rule} stages with it and {without} without, "
        f"{LEAST_STAGES} of each are needed",
    )
    if told.difference is None:
        return told
    low, high = interval(arms.presented, arms.withheld, arms.bounds)
    verdict = "it helps" if low > 0.0 else "it hurts" if high < 0.0 else "no difference shown: the interval holds 0"
    return told.model_copy(update={"low": low, "high": high, "verdict": verdict})


def interval(
    a: list[float], b: list[float], bounds: tuple[float, float], *, draws: int = _DRAWS, seed: int = _SEED
) -> tuple[float, float]:
    """95 % interval of mean(a) - mean(b) for scores within `bounds`, whatever they are distributed as.

    Each arm's mean has a lower and an upper confidence distribution: the scores and one more, put at the near end of
    the bounds, under weights drawn from the flat Dirichlet distribution (Gaffke 2005; for two-valued scores it is that
    of Clopper and Pearson). The interval melds them: the lower limit is a quantile of lower(a) - upper(b) (Fay,
    Proschan and Brittain 2015; for two-valued scores it agrees with Fisher's exact test). Seeded, so always the same.
    """
    import numpy as np  # noqa: PLC0415

    random = np.random.default_rng(seed)
    least_a, most_a = _means(a, bounds, draws, random)
    least_b, most_b = _means(b, bounds, draws, random)
    tail = (1.0 - CONFIDENCE) / 2.0
    return float(np.quantile(least_a - most_b, tail)), float(np.quantile(most_a - least_b, 1.0 - tail))


def _means(
    scores: list[float], bounds: tuple[float, float], draws: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws from the lower and the upper confidence distribution of a mean, each of shape (draws,)."""
    import numpy as np  # noqa: PLC0415

    least, counts = np.unique(np.asarray(scores, dtype=float), return_counts=True)
    most = least
    if len(least) > _GROUPS:
        parts = np.array_split(np.arange(len(least)), _GROUPS)
        counts = np.array([counts[part].sum() for part in parts])
        least, most = least[[part[0] for part in parts]], least[[part[-1] for part in parts]]
    # Equal scores share one weight: gamma variables add up.
    weights = random.standard_gamma(np.append(counts, 1).astype(float), size=(draws, len(counts) + 1))
    total = weights.sum(axis=1)
    return (
        weights @ np.append(least, min(bounds[0], least[0])) / total,
        weights @ np.append(most, max(bounds[1], most[-1])) / total,
    )
