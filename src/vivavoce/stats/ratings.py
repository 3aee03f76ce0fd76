"""What raters say of a conversation: a label of a dataset, as numbers.

A label is a yes or no, a number, or a list of these, one for each rater; more is better, and yes means that the
conversation should pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, isfinite
from typing import Any, cast


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
    boolean = all(isinstance(one, bool) for one in several)
    if not boolean and not all(_is_number(one) for one in several):
        raise ValueError(f"labels.{path} is {value!r:.80}; a label is a number, true or false, or a list of these")
    return Ratings(tuple(map(float, several)), boolean)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
