"""The statistics of the audit, through SciPy, which is imported only where one of them is asked for."""

from __future__ import annotations

from ledger import wire
from ledger.domain.holdout import Arms

LEAST_STAGES = 5
"""Scored stages that each arm needs before an interval is given."""

_RESAMPLES = 9999
_SEED = 20260101


def rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's rank correlation; None below two items or where one side is constant."""
    if len(a) < 2 or len(set(a)) < 2 or len(set(b)) < 2:
        return None
    from scipy.stats import spearmanr  # noqa: PLC0415

    return float(spearmanr(a, b).statistic)


def uplift(arms: Arms) -> wire.Uplift:
    """Mean stage score with the rule less without it, with a 95 % bootstrap interval (percentile, seeded).

    The percentile interval also holds where one arm is constant, which the bias-corrected one does not.
    """
    with_rule, without = arms.presented, arms.withheld
    told = wire.Uplift(
        experience=arms.experience,
        presented=len(with_rule),
        withheld=len(without),
        difference=None,
        low=None,
        high=None,
        verdict=f"not enough evidence: {len(with_rule)} stages with it and {len(without)} without, "
        f"{LEAST_STAGES} of each are needed",
    )
    if min(len(with_rule), len(without)) < LEAST_STAGES:
        return told
    import numpy as np  # noqa: PLC0415
    from scipy.stats import bootstrap  # noqa: PLC0415

    def difference(a: object, b: object, axis: int = -1) -> object:
        return np.mean(a, axis=axis) - np.mean(b, axis=axis)  # type: ignore[call-overload]

    interval = bootstrap(
        (np.asarray(with_rule), np.asarray(without)),
        difference,
        n_resamples=_RESAMPLES,
        confidence_level=0.95,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    low, high = float(interval.low), float(interval.high)
    verdict = "it helps" if low > 0.0 else "it hurts" if high < 0.0 else "no difference shown: the interval holds 0"
    mean = sum(with_rule) / len(with_rule) - sum(without) / len(without)
    return told.model_copy(update={"difference": mean, "low": low, "high": high, "verdict": verdict})
