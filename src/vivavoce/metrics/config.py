"""What a metric says about itself before it measures anything, and the options that all metrics share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, model_validator

from vivavoce.comparing.thresholds import compare, exact, reaches
from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.metrics.transcript import Shown
from vivavoce.records.score import PASSING, Raw, shorten
from vivavoce.validation import find_truth_as_number, number_expected

ScoreType = Literal["numeric", "categorical", "binary"]
Direction = Literal["higher_is_better", "lower_is_better"]
Scope = Literal["conversation", "window", "turn"]
"""What one judgement is about: the whole conversation, some turns in a row, or one turn."""


RANGE_TOLERANCE = 1e-9
"""How far rounding may carry a score beyond the ends of its range."""

_TEXTS = ("class_name", "name", "description", "metric_type")


class ConversationType(StrEnum):
    """What a metric looks at: one answer, or a conversation."""

    SINGLE_TURN = "single_turn"
    MULTI_TURN = "multi_turn"


class MetricConfig(BaseModel):
    """The name of a metric, the kind and range of its scores, and what counts as passing.

    A numeric score is between `minimum` and `maximum` (None: unbounded) and passes on the right side of
    `threshold`. A categorical one is one of `categories`, the worst first, and passes when it is among
    `passing_categories`. Without a threshold or passing categories the best score passes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    class_name: str = ""
    name: str = ""
    description: str = ""
    score_type: ScoreType = "numeric"
    metric_type: str = "conversation"
    requires_ground_truth: bool = False
    requires_context: bool = False
    direction: Direction = "higher_is_better"
    minimum: float = 0.0
    maximum: float | None = 1.0
    threshold: float | None = None
    categories: tuple[str, ...] = ()
    passing_categories: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """Take a text that is None as not given."""
        if not isinstance(data, Mapping):
            return data
        fields = cast("Mapping[str, Any]", data)
        return {name: value for name, value in fields.items() if value is not None or name not in _TEXTS}

    def scored(
        self, raw: Raw, passed: bool | None = None, value: float | None = None
    ) -> tuple[float | None, bool | None]:
        """Return the value of a score from 0 to 1, and whether it passes; keep what the metric itself decided.

        Without a maximum, the value of a score is whether it passes; both are None if nothing decides that.

        Raises:
            GraderFault: the score is not of the kind that the metric states.
        """
        value = self.normalised(raw) if value is None else value
        passed = self.passes(raw) if passed is None else passed
        if value is None:
            if isinstance(raw, str) and self.categories:
                raise self._unfit(raw)
            return None if passed is None else float(passed), passed
        if not -RANGE_TOLERANCE <= value <= 1 + RANGE_TOLERANCE:
            raise self._unfit(raw)
        value = min(max(value, 0.0), 1.0)
        return value, reaches(value, PASSING) if passed is None else passed

    def _unfit(self, raw: Raw) -> GraderFault:
        name, score_text = self.name or self.class_name or "the metric", shorten(repr(raw), 80)
        return GraderFault(f"{name} returned {score_text}, which does not match its score_type", kind="format")

    def passes(self, score: Raw) -> bool | None:
        """Return whether a score passes, None if the configuration does not decide it."""
        if isinstance(score, str):
            return score in self.passing_categories if self.passing_categories else None
        if isinstance(score, bool) and self.threshold is None:
            return score if self.direction == "higher_is_better" else not score
        if self.threshold is None:
            return None
        return compare(score, "gte" if self.direction == "higher_is_better" else "lte", self.threshold)

    def goodness(self, score: Raw) -> tuple[bool, float]:
        """Return the sort key of a score: the worst first, and failing scores before passing ones."""
        return self.passes(score) is not False, self.normalised(score) or 0.0

    def normalised(self, score: Raw) -> float | None:
        """Return a score as a number from 0, worst, to 1, best; None if its range is unbounded.

        A category counts by its rank: of n, the worst is 0, the next 1/(n - 1), the best 1.
        """
        if isinstance(score, str):
            return self.categories.index(score) / max(1, len(self.categories) - 1) if score in self.categories else None
        if isinstance(score, bool):
            share = Fraction(score)
        elif self.maximum is None:
            return None
        elif not math.isfinite(score):
            return score
        else:
            share = (exact(score) - exact(self.minimum)) / (exact(self.maximum) - exact(self.minimum))
        return float(share if self.direction == "higher_is_better" else 1 - share)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a metric asks: about which part of a conversation, what of it is shown, and with which settings.

    `calls` is how many calls one question takes, where each of them is answered; `JudgingOptions` has the others.
    """

    shown: Shown
    scope: Scope
    window: int
    tokens: int
    overlap: int
    settings: Mapping[str, Any]
    trial: int
    calls: int = 1


T = TypeVar("T")


def read_options(kind: type[T], options: Mapping[str, Any]) -> T:
    """Return options as their type has them; `kind` is a TypedDict.

    Raises:
        UsageError: an option is unknown, or of the wrong type.
    """
    check_names(kind, options)
    for name, annotation in _hints(kind).items():
        if name in options and (path := find_truth_as_number(annotation, options[name])) is not None:
            raise UsageError(f"option '{name}': {number_expected(path)}")
    try:
        return _reader(kind).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"option '{place}': {first['msg']}, got {first['input']!r}") from error


def check_names(kind: type, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that a TypedDict does not have."""
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise UsageError(f"no option '{name}'{did_you_mean(name, known)}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _reader(kind: type[T]) -> TypeAdapter[T]:
    return cast("TypeAdapter[T]", TypeAdapter(kind))
