"""What conversations are told apart by before any is judged: a count, a field of the row, or a metric that asks nobody.

Of each conversation one number or one word is kept, and never its text.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.judges import asking
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.metric_input import metric_input
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.steps import Run
from vivavoce.models.cache import OfflineModel
from vivavoce.pacing.waiting import wait_for
from vivavoce.plugins import is_file_reference
from vivavoce.records.call_states import outcome_of
from vivavoce.records.failure import shorten
from vivavoce.samples.sample import Sample
from vivavoce.suites.grader_spec import MetricGraderSpec
from vivavoce.suites.metric_names import metric_of

if TYPE_CHECKING:
    from vivavoce.models.model import Model

Value: TypeAlias = float | str | None
"""What one conversation has: a number, a word, or nothing."""

RANGES = 4
"""Ranges that numbers are cut into, at their quantiles."""
WORDS = 10_000
"""Different words up to which something tells conversations apart."""
LONGEST = 80
"""Characters of a word that are kept."""
WITHOUT = "without"
"""The name of what conversations have that lack something."""


@dataclass(slots=True)
class Trait:
    """One thing that conversations are told apart by, and what each of them has, in their order."""

    name: str
    read: Callable[[Sample], Value]
    numbers: array[float] = field(default_factory=lambda: array("d"))
    places: array[int] = field(default_factory=lambda: array("i"))
    words: dict[str, int] = field(default_factory=dict[str, int])
    keys: set[str] = field(default_factory=set[str])

    def add(self, sample: Sample) -> None:
        """Keep what a conversation has.

        Raises:
            UsageError: there are too many different words to tell conversations apart.
        """
        value = self.read(sample)
        word = value[:LONGEST] if isinstance(value, str) else None
        self.numbers.append(math.nan if value is None or isinstance(value, str) else value)
        self.places.append(-1 if word is None else self.words.setdefault(word, len(self.words)))
        if len(self.words) > WORDS:
            raise UsageError(f"{self.name} has more than {WORDS:,} different values, which is no way to form groups")

    def groups(self) -> tuple[NDArray[np.intp], list[str]]:
        """Return the group of each conversation, and the names of the groups.

        Raises:
            UsageError: no conversation has it.
        """
        numbers = np.frombuffer(self.numbers, dtype=np.float64)
        found = np.frombuffer(self.places, dtype=np.intc).astype(np.intp)
        known = ~np.isnan(numbers)
        if not known.any() and not self.words:
            raise UsageError(f"no conversation has {self.name}{did_you_mean(self.name, self.keys)}")
        ranges, names = _ranges(numbers[known])
        found[known] = len(self.words) + ranges
        names = [f"{self.name} {one}" for one in (*self.words, *names, WITHOUT)]
        found[found < 0] = len(names) - 1
        return found, names

    def weights(self) -> NDArray[np.float64]:
        """Return the number that each conversation has, not a number where it has none.

        Raises:
            UsageError: a value is not a number of 0 or more, or no conversation has one.
        """
        found = np.frombuffer(self.numbers, dtype=np.float64)
        if self.words:
            raise UsageError(f"{self.name} is '{next(iter(self.words))}', and a weight is a number: use it with --by")
        if np.isnan(found).all():
            raise UsageError(f"no conversation has {self.name}{did_you_mean(self.name, self.keys)}")
        if (least := float(np.nanmin(found))) < 0 or math.isinf(float(np.nanmax(found))):
            raise UsageError(f"{self.name} is not always a finite number of 0 or more (got {least:g}), as a weight is")
        return found


def trait_of(name: str, base: Path) -> Trait:
    """Return a trait by its name: `turns`, `tool_errors`, `tag`, a field of the row, or a metric that asks nobody.

    Raises:
        UsageError: there is none of that name, or it asks a model.
    """
    if name in _COUNTED:
        return Trait(name, _COUNTED[name])
    first, *rest = name.split(".")
    if first in Sample.model_fields and first != "messages" and all(rest):
        trait = Trait(name, lambda sample: None)
        trait.read = lambda sample: _field(getattr(sample, first), rest, first, trait.keys)
        return trait
    return Trait(name, _measure(name, _metric(name, base)))


def _metric(name: str, base: Path) -> BaseMultiTurnMetric:
    by_name = not is_file_reference(name) and not name.endswith((".yaml", ".yml"))
    if by_name and name not in (known := metrics.names()):
        rule = f"conversations are told apart by {', '.join(_COUNTED)}, a field such as metadata.language, or a metric"
        meant = did_you_mean(name, [*_COUNTED, *known, *(Sample.model_fields.keys() - {"messages"})])
        raise UsageError(f"no metric '{shorten(name, 80)}': {rule} that asks no model{meant}")
    metric = metric_of(name, MetricGraderSpec(kind="metric", metric=name), base, _unopened)
    if any(True for _ in asking(metric)) or metric.may_ask:
        raise UsageError(f"'{name}' asks a model, for each conversation of the file; use an exact metric or a field")
    return metric


def _unopened(judge: str | Model) -> Model:
    return OfflineModel(judge) if isinstance(judge, str) else judge


def _measure(name: str, metric: BaseMultiTurnMetric) -> Callable[[Sample], Value]:
    def measure(sample: Sample) -> Value:
        asked = metric_input(sample, sample.messages or [])
        if metric.unmet(asked) is not None:
            return None
        run = Run(metric.plan_for(Reading(asked)))
        result = run.result if run.step is None else wait_for(run.finish())
        if result.failure is not None:
            raise UsageError(f"{name} cannot measure '{shorten(sample.id, 80)}': {result.failure.message}")
        return _value(result.raw)

    return measure


def _tool_errors(sample: Sample) -> float:
    """Return how many results of tools are those of failed calls."""
    results = [message for message in sample.messages or () if message.role == "tool"]
    return float(sum(outcome_of(result) == "failed" for result in results))


def _tags(sample: Sample) -> str | None:
    return ", ".join(sorted(set(sample.tags))) or None


_COUNTED: dict[str, Callable[[Sample], Value]] = {
    "turns": lambda sample: float(sample.turn_count),
    "tool_errors": _tool_errors,
    "tag": _tags,
}


def _field(value: object, rest: Sequence[str], path: str, keys: set[str]) -> Value:
    """Return a field of a row, and collect in `keys` what is beside what is looked for."""
    for key in rest:
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if len(keys) < WORDS:
            keys.update(f"{path}.{one}" for one in inner)
        value, path = inner.get(key), f"{path}.{key}"
    return _value(value)


def _value(value: object) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return None if math.isnan(value) else float(value)
    return value if isinstance(value, str) else None


def _ranges(numbers: NDArray[np.float64]) -> tuple[NDArray[np.intp], list[str]]:
    """Return the range of each number and the names of the ranges: of a few different numbers each is its own."""
    different = np.unique(numbers)
    if len(different) > RANGES:
        cuts = np.quantile(numbers, np.arange(1, RANGES) / RANGES, method="inverted_cdf")
        starts = np.unique([different[0], *(different[different > cut][0] for cut in cuts if cut < different[-1])])
    else:
        starts = different
    found = np.searchsorted(starts, numbers, side="right") - 1
    ends = [float(numbers[found == place].max()) for place in range(len(starts))]
    return found, [f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in zip(starts.tolist(), ends, strict=True)]
