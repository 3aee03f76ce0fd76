"""Features of simulated and real users side by side: how far apart, and which differences chance explains."""

from __future__ import annotations

from itertools import compress

import numpy as np
from pydantic import BaseModel, ConfigDict

from vivavoce.features.realism.features import FEATURES, Feature
from vivavoce.features.realism.measuring import Both
from vivavoce.stats.groups import RATE, adjust_p_values
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.ranking import auroc
from vivavoce.stats.two_means import UNBOUNDED, Bounds, MeanDifference, mean_differences


class Figure(BaseModel):
    """A feature on one side: its mean over `n` conversations with the 95% interval, and its median."""

    model_config = ConfigDict(frozen=True)

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    median: float | None = None


class FeatureDifference(BaseModel):
    """One feature on both sides; `difference` is simulated less real, with its 95% interval.

    `higher` says in which part of all pairs of a simulated and a real conversation the simulated one has more of it,
    equal ones counting half: 0.5 is not a difference. `q_value` is the least false-discovery rate at which the feature
    is among those that differ; it `differs` where that is at most 0.05 and the interval excludes zero.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    name: str
    what: str
    unit: str
    english: bool
    simulated: Figure
    real: Figure
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    higher: float | None = None
    differs: bool = False

    @property
    def telling(self) -> float:
        """How well the feature alone tells the sides apart, from 0 to 0.5."""
        return 0.0 if self.higher is None else abs(self.higher - 0.5)


def feature_differences(both: Both) -> list[FeatureDifference]:
    """Return all features, those that differ beyond chance first, and among them the most telling first."""
    differences = mean_differences(both.rows, both.clusters, both.is_simulated, FEATURE_BOUNDS)
    compared = [
        _compare_feature(both, place, feature, difference)
        for place, (feature, difference) in enumerate(zip(FEATURES, differences, strict=True))
    ]
    tested = [feature.p_value for feature in compared if feature.p_value is not None]
    q_values = iter(adjust_p_values(tested))
    adjusted = [
        feature if feature.p_value is None else _with_q(feature, difference, next(q_values))
        for feature, difference in zip(compared, differences, strict=True)
    ]
    return sorted(adjusted, key=lambda feature: (not feature.differs, -feature.telling))


def _with_q(difference: FeatureDifference, mean_difference: MeanDifference | None, q_value: float) -> FeatureDifference:
    differs = q_value <= RATE and mean_difference is not None and mean_difference.excludes_zero
    return difference.model_copy(update={"q_value": q_value, "differs": differs})


def _compare_feature(
    both: Both, place: int, feature: Feature, mean_difference: MeanDifference | None
) -> FeatureDifference:
    column = both.rows[:, place]
    known = ~np.isnan(column)
    return FeatureDifference(
        key=feature.key,
        name=feature.name,
        what=feature.what,
        unit=feature.unit,
        english=feature.english,
        simulated=_figure(both, place, feature, simulated=True),
        real=_figure(both, place, feature, simulated=False),
        difference=None if mean_difference is None else mean_difference.difference,
        low=None if mean_difference is None else mean_difference.low,
        high=None if mean_difference is None else mean_difference.high,
        p_value=None if mean_difference is None else mean_difference.p_value,
        higher=None if mean_difference is None else auroc(column[known], both.is_simulated[known]),
    )


def _figure(both: Both, place: int, feature: Feature, *, simulated: bool) -> Figure:
    column = both.rows[:, place]
    which = ~np.isnan(column) & (both.is_simulated == simulated)
    values = column[which].tolist()
    interval = mean_interval(values, list(compress(both.clusters, which.tolist())), bounds=_bounds(feature))
    if interval is None:
        return Figure(n=0)
    return Figure(
        n=interval.n,
        mean=interval.mean,
        low=None if interval.low is None else max(0.0, interval.low),
        high=interval.high,
        median=float(np.median(values)),
    )


def _bounds(feature: Feature) -> Bounds:
    return (0.0, 1.0) if feature.unit == "share" else UNBOUNDED


FEATURE_BOUNDS = tuple(_bounds(feature) for feature in FEATURES)
"""The range of the values of each feature."""
