"""Drawing some conversations of a file to judge, so that what they say holds for all of them.

Of each conversation one number or one word is kept, and never its text.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.grading.gates import Gate, LogicalGate, SamplesGate
from vivavoce.metrics.factory import metrics
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.panel import asking
from vivavoce.metrics.question import Run
from vivavoce.metrics.types import Reading, metric_input
from vivavoce.models.cache import OfflineModel
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import is_file_reference
from vivavoce.records.run import DrawRecord, Sampling, Stratum
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import outcome_of
from vivavoce.samples.sample import Sample
from vivavoce.stats.sampled import allocation, inclusion, systematic, with_floor
from vivavoce.suites.grading_spec import MetricGraderSpec
from vivavoce.suites.metric_names import metric_of
from vivavoce.suites.plan import Draw

if TYPE_CHECKING:
    from vivavoce.models.model import Model


Value: TypeAlias = float | str | None
"""What one conversation has: a number, a word, or nothing."""

RANGES = 4
"""Ranges that numbers are cut into, at their quantiles."""
WORDS = 10_000
"""Different words up to which something tells conversations apart."""
MAX_WORD_CHARS = 80
"""Characters of a word that are kept."""
WITHOUT = "without"
"""The name of what conversations have that lack something."""


@dataclass(slots=True)
class Trait:
    """One thing that conversations are distinguished by, and what each of them has, in their order."""

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
        word = value[:MAX_WORD_CHARS] if isinstance(value, str) else None
        self.numbers.append(math.nan if value is None or isinstance(value, str) else value)
        self.places.append(-1 if word is None else self.words.setdefault(word, len(self.words)))
        if len(self.words) > WORDS:
            raise UsageError(f"{self.name} has too many distinct values to group by (limit {WORDS:,})")

    def groups(self) -> tuple[NDArray[np.intp], list[str]]:
        """Return the group of each conversation, and the names of the groups.

        Raises:
            UsageError: no conversation has it.
        """
        numbers = np.frombuffer(self.numbers, dtype=np.float64)
        places = np.frombuffer(self.places, dtype=np.intc).astype(np.intp)
        known = ~np.isnan(numbers)
        if not known.any() and not self.words:
            raise UsageError(f"no conversation has {self.name}{did_you_mean(self.name, self.keys)}")
        ranges, names = _ranges(numbers[known])
        places[known] = len(self.words) + ranges
        names = [f"{self.name} {group}" for group in (*self.words, *names, WITHOUT)]
        places[places < 0] = len(names) - 1
        return places, names

    def weights(self) -> NDArray[np.float64]:
        """Return the number that each conversation has, not a number where it has none.

        Raises:
            UsageError: a value is not a number of 0 or more, or no conversation has one.
        """
        weights = np.frombuffer(self.numbers, dtype=np.float64)
        if self.words:
            raise UsageError(
                f"{self.name} is '{next(iter(self.words))}', but a weight must be a number; use it with --by"
            )
        if np.isnan(weights).all():
            raise UsageError(f"no conversation has {self.name}{did_you_mean(self.name, self.keys)}")
        if (least := float(np.nanmin(weights))) < 0 or math.isinf(float(np.nanmax(weights))):
            raise UsageError(f"{self.name} must be a finite number of 0 or more to be a weight, got {least:g}")
        return weights


def trait_of(name: str, base: Path) -> Trait:
    """Return a trait by its name: `turns`, `tool_errors`, `tag`, a field of the row, or a metric that asks nobody.

    Raises:
        UsageError: there is none of that name, or it asks a model.
    """
    if name in _COUNT_TRAITS:
        return Trait(name, _COUNT_TRAITS[name])
    first, *rest = name.split(".")
    if first in Sample.model_fields and first != "messages" and all(rest):
        trait = Trait(name, lambda sample: None)
        trait.read = lambda sample: _field(getattr(sample, first), rest, first, trait.keys)
        return trait
    return Trait(name, _measure(name, _metric(name, base)))


def _metric(name: str, base: Path) -> BaseMultiTurnMetric:
    by_name = not is_file_reference(name) and not name.endswith((".yaml", ".yml"))
    if by_name and name not in (known := metrics.names()):
        counts = ", ".join(_COUNT_TRAITS)
        rule = f"conversations can be grouped by {counts}, a field such as metadata.language, or a metric"
        hint = did_you_mean(name, [*_COUNT_TRAITS, *known, *(Sample.model_fields.keys() - {"messages"})])
        raise UsageError(f"no metric '{shorten(name, 80)}': {rule} that uses no model{hint}")
    metric = metric_of(name, MetricGraderSpec(kind="metric", metric=name), base, _offline_model)
    if any(True for _ in asking(metric)) or metric.may_ask:
        raise UsageError(
            f"'{name}' would call a model for each conversation of the file; use an exact metric or a field"
        )
    return metric


def _offline_model(judge: str | Model) -> Model:
    return OfflineModel(judge) if isinstance(judge, str) else judge


def _measure(name: str, metric: BaseMultiTurnMetric) -> Callable[[Sample], Value]:
    def measure(sample: Sample) -> Value:
        metric_data = metric_input(sample, sample.messages or [])
        if metric.unmet(metric_data) is not None:
            return None
        run = Run(metric.plan_for(Reading(metric_data)))
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


_COUNT_TRAITS: dict[str, Callable[[Sample], Value]] = {
    "turns": lambda sample: float(sample.turn_count),
    "tool_errors": _tool_errors,
    "tag": _tags,
}


def _field(value: object, rest: Sequence[str], path: str, keys: set[str]) -> Value:
    """Return a field of a row, and collect in `keys` what is next to what is looked for."""
    for key in rest:
        inner = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if len(keys) < WORDS:
            keys.update(f"{path}.{name}" for name in inner)
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
    indexes = np.searchsorted(starts, numbers, side="right") - 1
    ends = [float(numbers[indexes == place].max()) for place in range(len(starts))]
    return indexes, [f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in zip(starts.tolist(), ends, strict=True)]


MAX_STRATA = 50
"""Strata at most, those with the most conversations; the others are one."""
OTHER = "other"

Places = NDArray[np.intp]


@dataclass(slots=True)
class Sampler:
    """Reads a whole dataset, keeps of each conversation what it is distinguished by, and draws `size` of them."""

    size: int
    by: Sequence[Trait] = ()
    weight_by: Trait | None = None
    population: int = field(default=0, init=False)

    @classmethod
    def of(cls, size: int, by: Sequence[str], weight_by: str | None, base: Path) -> Self:
        """Return one that tells conversations apart by what is named; files are relative to `base`.

        Raises:
            UsageError: they cannot be distinguished by that.
        """
        weight = None if weight_by is None else trait_of(weight_by, base)
        return cls(size, [trait_of(name, base) for name in dict.fromkeys(by)], weight)

    def add(self, sample: Sample) -> None:
        """Take the next conversation.

        Raises:
            UsageError: a metric cannot measure it.
        """
        self.population += 1
        for trait in self.by:
            trait.add(sample)
        if self.weight_by is not None:
            self.weight_by.add(sample)

    def draw(self, dataset: str) -> Draw | None:
        """Return what was drawn, the same for the same `dataset`, a hash; None where all are to be judged.

        Raises:
            UsageError: no conversation has what they are distinguished by.
        """
        strata, names = self._strata()
        weights = None if self.weight_by is None else with_floor(self.weight_by.weights())
        if self.size >= self.population:
            return None
        sizes = np.bincount(strata, minlength=len(names)).tolist()
        counts = allocation(sizes, self.size)
        places: dict[int, DrawRecord] = {}
        for stratum, count in enumerate(counts):
            mine = np.flatnonzero(strata == stratum)
            random = np.random.RandomState(_seed(f"{dataset} {names[stratum]}"))
            chances = inclusion(np.ones(len(mine)) if weights is None else weights[mine], count)
            for at in systematic(chances, random).tolist():
                places[int(mine[at])] = DrawRecord(stratum, float(chances[at]))
        ordered = dict(sorted(places.items()))
        sampling = Sampling(
            by=[trait.name for trait in self.by],
            weight_by=None if self.weight_by is None else self.weight_by.name,
            strata=[Stratum(name=a, size=b, drawn=c) for a, b, c in zip(names, sizes, counts, strict=True)],
            places=hashlib.blake2b(repr([*ordered.items()]).encode(), digest_size=16).hexdigest(),
        )
        return Draw(sampling, ordered)

    def check_gate(self, gate: Gate | None) -> None:
        """Refuse a gate that conversations which were not judged could decide otherwise.

        Raises:
            UsageError: it is about each conversation, and not about a mean.
        """
        if isinstance(gate, LogicalGate):
            for condition in gate.conditions:
                self.check_gate(condition)
            return
        if isinstance(gate, SamplesGate):
            raise UsageError("a gate on each sample needs all samples judged; remove the option sample")
        what = None if gate is None else gate.threshold.aggregation
        if what not in (None, "avg_score", "accuracy"):
            raise UsageError(f"a gate on {what} cannot be decided by a sample: use avg_score or accuracy, or judge all")

    @property
    def note(self) -> str:
        """What to say where all are judged."""
        number = f"{self.population:,} conversation{'s' * (self.population != 1)}"
        return f"the file has {number}, so --sample {self.size} judges all of them and nothing is estimated"

    def _strata(self) -> tuple[Places, list[str]]:
        """Return the stratum of each conversation and the names of the strata, the largest first and rare ones as one.

        A stratum is rare if less than one of it is drawn in proportion, or if there are more than `MAX_STRATA`.
        """
        joined, names = np.zeros(self.population, dtype=np.intp), [""]
        for trait in self.by:
            groups, of_groups = trait.groups()
            both, joined = np.unique(joined * len(of_groups) + groups, return_inverse=True)
            pairs = (divmod(int(pair), len(of_groups)) for pair in both)
            names = [", ".join(filter(None, (names[before], of_groups[mine]))) for before, mine in pairs]
            joined, names = _with_rare(joined, names, self.size)
        return joined, [name or "all" for name in names]


def _seed(text: str) -> int:
    """Return a seed that is the same wherever the same is drawn from; each stratum has its own, whatever the others."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest())


def _with_rare(joined: Places, names: Sequence[str], size: int) -> tuple[Places, list[str]]:
    counts = np.bincount(joined, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    most = max(1, min(MAX_STRATA, size // 2))
    large = [int(stratum) for stratum in order if counts[stratum] * size >= len(joined)]
    separate = large if len(large) == len(names) <= most else large[: most - 1]
    place = np.full(len(names), len(separate))
    place[separate] = np.arange(len(separate))
    rest = [stratum for stratum in range(len(names)) if stratum not in set(separate)]
    last = [] if not rest else [names[rest[0]] if len(rest) == 1 else OTHER if separate else ""]
    return place[joined], [*(names[stratum] for stratum in separate), *last]


def open_sampler(size: int, by: Sequence[str], weight_by: str | None, base: Path) -> Sampler:
    """Return what draws `size` conversations, by what is named; files are relative to `base`.

    Raises:
        UsageError: they cannot be distinguished by that.
    """
    return Sampler.of(size, by, weight_by, base)
