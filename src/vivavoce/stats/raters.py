"""Agreement between raters: Cohen's kappa of two, Fleiss' kappa and Krippendorff's alpha of any number, with intervals.

Fleiss' kappa and Krippendorff's alpha take counts: a row for each unit, a column for each category in its order, and
in each cell how many raters put the unit into the category.

A label is a yes or no, a number, or a list of these, one for each rater; more is better, and yes means that the
conversation should pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from vivavoce.stats.corrected import table_of
from vivavoce.stats.intervals import wilson
from vivavoce.stats.resampling import Floats, Weights, bootstrap


@dataclass(frozen=True, slots=True)
class Ratings:
    """What the raters of one conversation say, a number each; `boolean` where they say yes or no, as 1 or 0."""

    values: tuple[float, ...]
    boolean: bool

    @property
    def mean(self) -> float:
        """The mean over the raters."""
        return fsum(self.values) / len(self.values)

    def good(self, good_from: float | None) -> bool | None:
        """Say whether it should pass: by most raters, or by a mean from `good_from`; None where that is undecided."""
        if self.boolean:
            return None if self.mean == 0.5 else self.mean > 0.5
        return None if good_from is None else self.mean >= good_from

    def without(self, rater: int) -> tuple[Ratings, Ratings] | None:
        """Return what one rater says, and what the others say; None where either is missing."""
        if rater >= len(self.values) or len(self.values) < 2:
            return None
        others = (*self.values[:rater], *self.values[rater + 1 :])
        return Ratings(self.values[rater : rater + 1], self.boolean), Ratings(others, self.boolean)


def ratings_at(labels: object, path: str) -> Ratings | None:
    """Return the ratings at a dotted path of labels, None where there are none.

    Raises:
        ValueError: what stands there is neither a number nor a yes or no.
    """
    value: Any = labels
    for part in path.split("."):
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else None
    if value is None or value == []:
        return None
    several = cast("list[Any]", value if isinstance(value, list) else [value])
    boolean = all(isinstance(rating, bool) for rating in several)
    if not boolean and not all(_is_number(rating) for rating in several):
        raise ValueError(f"labels.{path} is {value!r:.80}; expected a number, true or false, or a list of these")
    return Ratings(tuple(map(float, several)), boolean)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


Counts = NDArray[np.int64]
Matrix = NDArray[np.float64]
Level = Literal["nominal", "ordinal"]
"""Whether categories are only equal or different, or have an order."""


def counts_of(ratings: Sequence[Sequence[Hashable]], categories: Sequence[Hashable]) -> Counts:
    """Return the counts of ratings, a list for each unit; every rating is one of the categories.

    Raises:
        ValueError: a rating is not a category.
    """
    return np.array(
        [[list(unit).count(category) for category in categories] for unit in _check_categories(ratings, categories)]
    ).reshape(-1, len(categories))


def fleiss(counts: Counts) -> float | None:
    """Return Fleiss' kappa; None where it cannot be computed.

    That is where chance alone agrees always, or where units have one rating, or different numbers of them.

    Source: J. L. Fleiss, Measuring Nominal Scale Agreement Among Many Raters (1971).
    """
    each = counts.sum(axis=1)
    if not len(counts) or each[0] < 2 or (each != each[0]).any():
        return None
    same = ((counts * (counts - 1)).sum(axis=1) / (each * (each - 1))).mean()
    chance = float(((counts.sum(axis=0) / counts.sum()) ** 2).sum())
    return None if chance == 1.0 else (float(same) - chance) / (1 - chance)


def krippendorff(counts: Counts, level: Level = "nominal") -> float | None:
    """Return Krippendorff's alpha, for any number of ratings for each unit; None where all ratings are equal.

    Units with fewer than two ratings are left out, because nothing can be compared there.

    Source: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).
    """
    return _alpha(_coincidences(counts).sum(axis=0), level)


def krippendorff_interval(
    counts: Counts, clusters: Sequence[Hashable], level: Level = "nominal"
) -> tuple[float, float] | None:
    """Return the 95% interval of alpha; `clusters` names the sample of each unit, as in `bootstrap`."""
    by_unit = _coincidences(counts)

    def alphas(weights: Weights) -> Matrix:
        results = [_alpha(table, level) for table in np.tensordot(weights, by_unit, axes=1)]
        return np.array([np.nan if alpha is None else alpha for alpha in results])

    return bootstrap(alphas, clusters)


def _check_categories(
    ratings: Sequence[Sequence[Hashable]], categories: Sequence[Hashable]
) -> Sequence[Sequence[Hashable]]:
    unknown = {rating for unit in ratings for rating in unit} - set(categories)
    if unknown:
        raise ValueError(f"not a category: {', '.join(sorted(map(repr, unknown)))}")
    return ratings


def _coincidences(counts: Counts) -> Matrix:
    """Return for each unit how often two of its ratings are of each two categories, divided by its ratings but one."""
    each = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(counts.shape[1], dtype=np.int64)
    return np.where(each[:, None, None] > 1, pairs / np.maximum(each - 1, 1)[:, None, None], 0.0)


def _alpha(coincidences: Matrix, level: Level) -> float | None:
    totals = coincidences.sum(axis=1)
    distances = _distances(totals, level)
    expected = float((np.outer(totals, totals) * distances).sum())
    if expected == 0.0:
        return None
    return 1 - (float(totals.sum()) - 1) * float((coincidences * distances).sum()) / expected


def _distances(totals: Matrix, level: Level) -> Matrix:
    """Return how far each two categories are apart, 0 for one and itself."""
    if level == "nominal":
        return 1.0 - np.eye(len(totals))
    middles = np.cumsum(totals) - totals / 2
    return (middles[:, None] - middles[None, :]) ** 2


Bools = Sequence[bool] | NDArray[np.bool_]


def kappa(judged: Bools, labels: Bools, weights: Sequence[float] | None = None) -> float | None:
    """Return the agreement of pairs beyond chance; None where the labels are not of both kinds.

    For labels of one kind it would be 0, whatever the other side says.

    Source: J. Cohen, A Coefficient of Agreement for Nominal Scales (1960).
    """
    first, second, w = _arrays(judged, labels, weights)
    chance = _by_chance(first, second, w)
    if chance is None:
        return None
    same = float(np.average(first == second, weights=w))
    return (same - chance) / (1 - chance)


def kappa_interval(
    judged: Bools,
    labels: Bools,
    clusters: Sequence[Hashable],
    weights: Sequence[float] | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Return the two-sided interval of `kappa`, None where there is no kappa; `clusters` names the sample of each pair.

    It is that of `Agreement.kappa_interval`: agreement by chance is taken as it is, and the observed one has Wilson's
    interval for as many independent pairs as they are worth, given their clusters and weights (see `table_of`).
    """
    first, second, w = _arrays(judged, labels, weights)
    chance = _by_chance(first, second, w)
    if chance is None:
        return None
    same = (first == second).astype(np.float64).tolist()
    whole = table_of([1.0] * len(same), same, clusters, w.tolist())
    low, high = wilson(whole.tp, whole.tp + whole.fn, level)
    return max(-1.0, (low - chance) / (1 - chance)), (high - chance) / (1 - chance)


def _arrays(judged: Bools, labels: Bools, weights: Sequence[float] | None) -> tuple[Floats, Floats, Floats]:
    first, second = np.asarray(judged, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    return first, second, np.ones(len(first)) if weights is None else np.asarray(weights, dtype=np.float64)


def _by_chance(first: Floats, second: Floats, w: Floats) -> float | None:
    """Return how often both sides would agree if neither knew of the other; None where the second has one kind."""
    if not len(second) or second.min() == second.max():
        return None
    yes, also = float(np.average(first, weights=w)), float(np.average(second, weights=w))
    return yes * also + (1 - yes) * (1 - also)
