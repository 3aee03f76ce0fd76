"""Features of simulated and real users side by side: how far apart, and which differences chance explains."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from vivavoce.report.realism.features import FEATURES, Feature
from vivavoce.report.realism.measuring import Both
from vivavoce.stats.bootstrap import Floats
from vivavoce.stats.groups import RATE, adjusted
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.ranking import auroc
from vivavoce.stats.two_means import Group, MeanDifference, mean_difference

UNBOUNDED = (-np.inf, np.inf)


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
    equal ones counting half: 0.5 is no difference. `q_value` is the least false-discovery rate at which the feature is
    among those that differ; it `differs` where that is at most 0.05.
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
    compared = [_compared(both, place, one) for place, one in enumerate(FEATURES)]
    tested = [one.p_value for one in compared if one.p_value is not None]
    q_values = iter(adjusted(tested))
    found = [one if one.p_value is None else _with_q(one, next(q_values)) for one in compared]
    return sorted(found, key=lambda one: (not one.differs, -one.telling))


def _with_q(one: FeatureDifference, q_value: float) -> FeatureDifference:
    return one.model_copy(update={"q_value": q_value, "differs": q_value <= RATE})


def _compared(both: Both, place: int, feature: Feature) -> FeatureDifference:
    column = both.rows[:, place]
    known = ~np.isnan(column)
    simulated, real = (
        group_of(column, both.clusters, known & which) for which in (both.is_simulated, ~both.is_simulated)
    )
    found = mean_difference(simulated, real) or MeanDifference(0.0, None, None, None)
    lacks = not simulated.values or not real.values
    return FeatureDifference(
        key=feature.key,
        name=feature.name,
        what=feature.what,
        unit=feature.unit,
        english=feature.english,
        simulated=_figure(simulated, feature.unit),
        real=_figure(real, feature.unit),
        difference=None if lacks else found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        higher=None if lacks else auroc(column[known], both.is_simulated[known]),
    )


def group_of(column: Floats, clusters: Sequence[str], which: NDArray[np.bool_]) -> Group:
    """Return the chosen values of a column with their clusters."""
    return Group(column[which].tolist(), list(compress(clusters, which.tolist())))


def _figure(group: Group, unit: str) -> Figure:
    bounds = (0.0, 1.0) if unit == "share" else UNBOUNDED
    found = mean_interval(group.values, group.clusters, bounds=bounds)
    if found is None:
        return Figure(n=0)
    return Figure(
        n=found.n,
        mean=found.mean,
        low=None if found.low is None else max(0.0, found.low),
        high=found.high,
        median=float(np.median(group.values)),
    )
