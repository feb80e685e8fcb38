"""How often the hold-out interval holds the true difference: `python -m benchmarks holdout`.

Stages are made up under known means, in arms from the least size on, equal and unequal, with equal and with unequal
means; beside the interval that the audit gives stand a percentile bootstrap and Welch's t interval. Prints a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from ledger.audit.statistics import LEAST_STAGES, interval

FAILURE = -0.1
BOUNDS = (FAILURE, 1.0)
ARMS = ((LEAST_STAGES, LEAST_STAGES), (5, 40), (LEAST_STAGES, 200), (10, 10), (30, 30))
SEED = 3

Scores = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True, slots=True)
class Law:
    """How the scores of an arm are spread, and their mean."""

    name: str
    kind: str
    """`binary`: pass or failure; `mixed`: a failure or a gain; `continuous`: a gain."""
    draw: Scores
    mean: float


def passes(share: float) -> Law:
    """Correctness stages that pass with this chance."""
    mean = share + (1.0 - share) * FAILURE
    return Law(f"pass {share:g}", "binary", lambda r, n: np.where(r.random(n) < share, 1.0, FAILURE), mean)


def gains(share: float, a: float, b: float) -> Law:
    """Optimization stages that gain with this chance, as Beta(a, b); the others fail."""
    mean = share * a / (a + b) + (1.0 - share) * FAILURE
    kind = "mixed" if share < 1.0 else "continuous"
    return Law(
        f"gain {share:g} by Beta({a:g}, {b:g})",
        kind,
        lambda r, n: np.where(r.random(n) < share, r.beta(a, b, n), FAILURE),
        mean,
    )


LAWS = (
    passes(0.1), passes(0.5), passes(0.9), passes(0.97),
    gains(0.1, 5, 1), gains(0.5, 2, 5), gains(0.9, 2, 5),
    gains(1.0, 2, 5), gains(1.0, 0.3, 3), gains(1.0, 8, 2),
)  # fmt: skip
PAIRS = (
    *((law, law) for law in LAWS),
    (passes(0.9), passes(0.5)),
    (passes(0.97), passes(0.1)),
    (gains(0.5, 2, 5), passes(0.5)),
    (gains(1.0, 0.3, 3), gains(0.1, 5, 1)),
)


def bootstrap(a: np.ndarray, b: np.ndarray, random: np.random.Generator) -> tuple[float, float]:
    """The percentile bootstrap, 400 resamples."""
    drawn = random.choice(a, (400, len(a))).mean(axis=1) - random.choice(b, (400, len(b))).mean(axis=1)
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def welch(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Welch's t interval."""
    from scipy.stats import t  # noqa: PLC0415

    apart = float(a.mean() - b.mean())
    parts = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    if sum(parts) == 0.0:
        return apart, apart
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
    half = float(t.ppf(0.975, freedom) * sum(parts) ** 0.5)
    return apart - half, apart + half


def coverage(pair: tuple[Law, Law], sizes: tuple[int, int], repeats: int, *, beside: bool = True) -> dict[str, float]:
    """Share of `repeats` intervals that hold the true difference, by method; `width`: the audit's mean width."""
    random = np.random.default_rng(SEED)
    true = pair[0].mean - pair[1].mean
    held = {"melded": 0, "bootstrap": 0, "welch": 0}
    width = 0.0
    for repeat in range(repeats):
        a, b = pair[0].draw(random, sizes[0]), pair[1].draw(random, sizes[1])
        found = {"melded": interval(list(a), list(b), BOUNDS, draws=800, seed=repeat)}
        if beside:
            found |= {"bootstrap": bootstrap(a, b, random), "welch": welch(a, b)}
        for method, (low, high) in found.items():
            held[method] += low - 1e-9 <= true <= high + 1e-9
        width += found["melded"][1] - found["melded"][0]
    return {method: count / repeats for method, count in held.items()} | {"width": width / repeats}


def main(arguments: list[str]) -> int:
    """Print the least coverage by kind of scores and size of arms."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks holdout --", description=__doc__)
    parser.add_argument("--repeats", type=int, default=400, help="intervals a cell (400)")
    repeats = parser.parse_args(arguments).repeats
    table = Table(
        "stages", "scores", "melded", "bootstrap", "Welch", "mean width", title=f"least coverage, {repeats} each"
    )
    for sizes in ARMS:
        cells: dict[str, list[dict[str, float]]] = {}
        for pair in PAIRS:
            kind = pair[0].kind if pair[0].kind == pair[1].kind else "of two kinds"
            cells.setdefault(kind, []).append(coverage(pair, sizes, repeats))
        for kind, found in cells.items():
            least = {method: min(cell[method] for cell in found) for method in ("melded", "bootstrap", "welch")}
            width = sum(cell["width"] for cell in found) / len(found)
            table.add_row(f"{sizes[0]} and {sizes[1]}", kind, *(f"{v:.1%}" for v in least.values()), f"{width:.2f}")
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
