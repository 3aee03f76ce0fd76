"""What became closer to real users from an earlier run to a later one."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from vivavoce.features.realism.differences import FEATURE_BOUNDS
from vivavoce.features.realism.features import FEATURES
from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.reading import UserSides
from vivavoce.features.realism.telling_apart import Apart, by_manner
from vivavoce.stats.groups import RATE, adjust_p_values
from vivavoce.stats.ranking import separation
from vivavoce.stats.two_means import mean_differences

Direction = Literal["closer", "farther", "past"]


class FeatureChange(BaseModel):
    """A feature of an earlier run, a later one and the real conversations, where both runs differ beyond chance.

    It came `closer` to the real mean or went `farther` from it; `past` is on the other side of it, and no farther.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    name: str
    unit: str
    earlier: float
    later: float
    real: float
    direction: Direction


class Apartness(BaseModel):
    """How far a run is from the real conversations: by a classifier, and by its features on average.

    `features` is in which part of all pairs one side has more of a feature, on average over all of them, with its 95%
    interval; 0.5 is alike. Other than the classifier's figure it still moves where a single feature gives all away.
    """

    model_config = ConfigDict(frozen=True)

    classifier: Apart
    features: float | None = None
    low: float | None = None
    high: float | None = None


class Change(BaseModel):
    """What changed from an earlier run: how far both are from real conversations, and the features that moved."""

    model_config = ConfigDict(frozen=True)

    earlier: str
    conversations: int
    before: Apartness
    after: Apartness
    features: list[FeatureChange]


def compare_runs(earlier: UserSides, both: Both, apart: Apart) -> Change:
    """Compare an earlier run with a later one, each next to the same real conversations.

    A feature counts where the two runs differ at a false-discovery rate of 5%.
    """
    before, runs = Both(earlier, both.real), Both(both.simulated, earlier)
    moved: list[tuple[FeatureChange, float]] = []
    differences = mean_differences(runs.rows, runs.clusters, runs.is_simulated, FEATURE_BOUNDS)
    for place, (feature, difference) in enumerate(zip(FEATURES, differences, strict=True)):
        real = both.rows[~both.is_simulated, place]
        real = real[~np.isnan(real)]
        if difference is None or difference.p_value is None or not len(real):
            continue
        column = runs.rows[:, place]
        later, first = (float(np.nanmean(column[side])) for side in (runs.is_simulated, ~runs.is_simulated))
        change = _change(feature.key, feature.name, feature.unit, (first, later, float(real.mean())))
        moved.append((change, difference.p_value if difference.excludes_zero else 1.0))
    q_values = adjust_p_values([p for _, p in moved])
    counting = [change for (change, _), q in zip(moved, q_values, strict=True) if q <= RATE]
    return Change(
        earlier=earlier.name,
        conversations=len(earlier.sides),
        before=_apartness(before, by_manner(before).apart),
        after=_apartness(both, apart),
        features=sorted(counting, key=lambda change: change.direction == "farther"),
    )


def _apartness(both: Both, classifier: Apart) -> Apartness:
    distance = separation(list(both.rows.T), both.is_simulated, both.clusters)
    if distance is None:
        return Apartness(classifier=classifier)
    return Apartness(classifier=classifier, features=distance.mean, low=distance.low, high=distance.high)


def _change(key: str, name: str, unit: str, means: tuple[float, float, float]) -> FeatureChange:
    earlier, later, real = means
    if abs(later - real) >= abs(earlier - real):
        direction: Direction = "farther"
    else:
        direction = "closer" if (later - real) * (earlier - real) >= 0 else "past"
    return FeatureChange(key=key, name=name, unit=unit, earlier=earlier, later=later, real=real, direction=direction)
