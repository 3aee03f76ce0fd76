"""One number for many: the mean, the median, the 95th percentile or the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Literal, get_args

Statistic = Literal["mean", "median", "p95", "max"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)


def summary(values: Sequence[float], statistic: Statistic) -> float:
    """Return a statistic of at least one value.

    The 95th percentile is by nearest rank: the smallest value that at least 95 % of the values do not exceed.
    """
    match statistic:
        case "mean":
            return fmean(values)
        case "median":
            return float(median(values))
        case "p95":
            return sorted(values)[math.ceil(0.95 * len(values)) - 1]
        case "max":
            return max(values)
