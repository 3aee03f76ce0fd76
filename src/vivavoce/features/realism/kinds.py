"""Kinds of real users, by how they write, and how many simulated users are of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from vivavoce.features.realism.features import FEATURES
from vivavoce.features.realism.measuring import Both
from vivavoce.features.realism.wording import value_in_words
from vivavoce.report.text import one_line
from vivavoce.stats.groups import RATE, adjust_p_values
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.resampling import Floats
from vivavoce.stats.two_means import mean_differences

MAX_KINDS = 4
MIN_CONVERSATIONS = 20
"""Conversations from which kinds are looked for."""
MIN_SHARE = 0.1
"""The part of the conversations that each kind has at least."""
SEED = 59
MARKS = 3
FAR = 0.4
"""Standard deviations from which on a feature marks a kind."""

BY = (
    *("messages", "words", "first_words", "questions", "details", "at_once", "capitals", "stops"),
    *("polite", "informal", "corrects", "closes"),
)
"""The features that make a kind: those that a tester can follow as instructions."""
_COLUMNS = [place for place, feature in enumerate(FEATURES) if feature.key in BY]


@dataclass(frozen=True)
class Centres:
    """The middle of each kind, in features that were brought to one scale."""

    mean: Floats
    spread: Floats
    centres: Floats

    def nearest(self, rows: Floats) -> NDArray[np.intp]:
        """Return the kind of each row of features."""
        scaled = _scale(rows, self.mean, self.spread)
        apart = ((scaled[:, None, :] - self.centres[None, :, :]) ** 2).sum(axis=2)
        return apart.argmin(axis=1)


class Kind(BaseModel):
    """A kind of real user: its share of the real and of the simulated conversations, with 95% intervals.

    `marks` are the features in which it differs most from the other kinds. `rarer` says that it has a smaller share of
    the simulated conversations beyond chance, at a false-discovery rate of 5%. `example` names a real conversation in
    its middle, and `says` begins its first message.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    real: float
    real_low: float | None = None
    real_high: float | None = None
    simulated: float
    simulated_low: float | None = None
    simulated_high: float | None = None
    rarer: bool = False
    marks: list[str]
    example: str
    says: str


def kinds_of(both: Both) -> list[Kind]:
    """Return the kinds of the real users, the largest first; none where they are too few or all alike."""
    real = both.rows[~both.is_simulated]
    kinds = find_kinds(real)
    if kinds is None:
        return []
    of = kinds.nearest(both.rows)
    inside = (of[:, None] == np.arange(len(kinds.centres))).astype(np.float64)
    bounds = [(0.0, 1.0)] * len(kinds.centres)
    compared = mean_differences(inside, both.clusters, both.is_simulated, bounds)
    q_values = adjust_p_values(
        [1.0 if difference is None or difference.p_value is None else difference.p_value for difference in compared]
    )
    return [_kind(both, kinds, of, kind, q_values[kind]) for kind in range(len(kinds.centres))]


def find_kinds(rows: Floats) -> Centres | None:
    """Return as many kinds as there are of at least a tenth of the rows each, four at most; None for fewer than two.

    Source: D. Arthur and S. Vassilvitskii, k-means++: The Advantages of Careful Seeding (2007).
    """
    if len(rows) < MIN_CONVERSATIONS:
        return None
    from scipy.cluster import vq

    clustering: Any = vq
    raw = _raw(rows)
    known = [_drop_unknown(column) for column in raw.T]
    mean = np.array([float(column.mean()) if len(column) else 0.0 for column in known])
    spread = np.array([float(column.std()) if len(column) else 0.0 for column in known])
    spread = np.where(spread > 1e-9, spread, np.inf)
    scaled = _scale(rows, mean, spread)
    distinct = len(np.unique(scaled.round(6), axis=0))
    for number in range(min(MAX_KINDS, distinct), 1, -1):
        try:
            centres, of = clustering.kmeans2(scaled, _seeds(scaled, number), minit="matrix", missing="raise")
        except vq.ClusterError:  # a kind lost all of its rows
            continue
        sizes = np.bincount(of, minlength=number)
        if sizes.min() >= MIN_SHARE * len(rows):
            return Centres(mean, spread, centres[np.argsort(-sizes, kind="stable")])
    return None


def _seeds(scaled: Floats, number: int) -> Floats:
    """Return rows to begin with: each is drawn by its squared distance from the nearest one before."""
    draw = np.random.default_rng(SEED)
    seeds = [scaled[draw.integers(len(scaled))]]
    while len(seeds) < number:
        apart = np.min([((scaled - seed) ** 2).sum(axis=1) for seed in seeds], axis=0)
        seeds.append(scaled[draw.choice(len(scaled), p=apart / apart.sum())])
    return np.array(seeds)


def _raw(rows: Floats) -> Floats:
    """Return the columns that make kinds, counts by their logarithms: twice as many words is a step everywhere."""
    counts = np.array([FEATURES[place].unit == "count" for place in _COLUMNS])
    columns = rows[:, _COLUMNS]
    return np.where(counts, np.log1p(np.where(counts, columns, 0.0)), columns)


def _scale(rows: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.nan_to_num((_raw(rows) - mean) / spread, nan=0.0)


def _kind(both: Both, centres: Centres, of: NDArray[np.intp], kind: int, q_value: float) -> Kind:
    inside = (of == kind).astype(np.float64)
    shares = [
        mean_interval(inside[side].tolist(), list(compress(both.clusters, side.tolist())))
        for side in (~both.is_simulated, both.is_simulated)
    ]
    real, simulated = shares
    assert real is not None
    assert simulated is not None
    middle = _middle(both, centres, of, kind)
    return Kind(
        number=kind + 1,
        real=real.mean,
        real_low=real.low,
        real_high=real.high,
        simulated=simulated.mean,
        simulated_low=simulated.low,
        simulated_high=simulated.high,
        rarer=q_value <= RATE and simulated.mean < real.mean,
        marks=list(marks(both.rows[~both.is_simulated], of[~both.is_simulated] == kind)),
        example=both.sides[middle].name,
        says=one_line(both.sides[middle].messages[0], 160),
    )


def _middle(both: Both, centres: Centres, of: NDArray[np.intp], kind: int) -> int:
    """Return the place of the real conversation that is nearest to the middle of a kind."""
    places = np.flatnonzero(~both.is_simulated & (of == kind))
    scaled = _scale(both.rows[places], centres.mean, centres.spread)
    return int(places[((scaled - centres.centres[kind]) ** 2).sum(axis=1).argmin()])


def marks(rows: Floats, inside: NDArray[np.bool_], most: int = MARKS) -> Iterator[str]:
    """Yield the features in which some rows differ most from the others, with both means."""
    features: list[tuple[float, str]] = []
    for place, feature in enumerate(FEATURES):
        inner, outer = (_drop_unknown(rows[which, place]) for which in (inside, ~inside))
        if not len(inner) or not len(outer):
            continue
        spread = float(np.std(np.concatenate([inner, outer])))
        apart = float(inner.mean() - outer.mean()) / spread if spread > 1e-9 else 0.0
        values = [value_in_words(float(values.mean()), feature.unit) for values in (inner, outer)]
        features.append((abs(apart), f"{feature.name} {values[0]} (others {values[1]})"))
    for apart, text in sorted(features, key=lambda item: -item[0])[:most]:
        if apart >= FAR:
            yield text


def _drop_unknown(values: Floats) -> Floats:
    return values[~np.isnan(values)]
