"""pass@k and pass^k: whether one of k trials succeeds, and whether all of them do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from vivavoce.comparing.thresholds import mean
from vivavoce.stats.intervals import mean_interval


@dataclass(frozen=True, slots=True)
class Passes:
    """Means over the `samples` that have at least `k` trials; `left_out` samples have fewer.

    `hat_low` and `hat_high` are the 95% interval of `hat_k`, by `mean_interval` over the samples.
    """

    k: int
    at_k: float
    hat_k: float
    hat_low: float | None
    hat_high: float | None
    samples: int
    left_out: int


def pass_at_k(successes: int, trials: int, k: int) -> Fraction:
    """Return the exact chance that at least one of `k` trials, drawn from those seen, succeeded.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374 (2021), equation 1.
    """
    _check(successes, trials, k)
    return 1 - Fraction(math.comb(trials - successes, k), math.comb(trials, k))


def pass_hat_k(successes: int, trials: int, k: int) -> Fraction:
    """Return the exact chance that all of `k` trials, drawn from those seen, succeeded.

    Source: S. Yao et al., tau-bench, arXiv:2406.12045 (2024).
    """
    _check(successes, trials, k)
    return Fraction(math.comb(successes, k), math.comb(trials, k))


def passes(counts: Sequence[tuple[int, int]], k: int) -> Passes | None:
    """Return the means of pass@k and pass^k over samples, None where no sample has `k` trials.

    `counts` holds for each sample how many of its trials succeeded, and how many it has.
    """
    enough = [(successes, trials) for successes, trials in counts if trials >= k]
    if not enough:
        return None
    hats = [pass_hat_k(c, n, k) for c, n in enough]
    interval = mean_interval([float(each) for each in hats])
    return Passes(
        k=k,
        at_k=float(mean([pass_at_k(c, n, k) for c, n in enough])),
        hat_k=float(mean(hats)),
        hat_low=interval and interval.low,
        hat_high=interval and interval.high,
        samples=len(enough),
        left_out=len(counts) - len(enough),
    )


def passes_by_k(counts: Sequence[tuple[int, int]]) -> dict[int, Passes]:
    """Return pass@k and pass^k over the same samples for every k; empty where trials do not repeat.

    They are the samples with at least as many trials as more than half of all samples have, which is also the largest
    k. Over other samples for each k, pass^k could rise with k, only because hard samples have fewer trials.
    """
    ordered = sorted(trials for _, trials in counts)
    most = ordered[(len(ordered) - 1) // 2] if ordered else 0
    enough = [(successes, trials) for successes, trials in counts if trials >= most]
    found = {k: passes(enough, k) for k in range(1, most + 1)} if most > 1 else {}
    left_out = len(counts) - len(enough)
    return {k: replace(one, left_out=left_out) for k, one in found.items() if one is not None}


def _check(successes: int, trials: int, k: int) -> None:
    if not (0 <= successes <= trials and 1 <= k <= trials):
        raise ValueError(
            f"successes must be between 0 and trials, and k between 1 and trials; "
            f"got {successes} of {trials} trials with k = {k}"
        )
