"""`Scores`: what one grader said of the conversations of one target, as gates read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Protocol, cast

from vivavoce.comparing.thresholds import Number, Operator, compare, exact
from vivavoce.errors import UsageError
from vivavoce.plugins import lazy
from vivavoce.records.label import CalibrationNeed, CorrectedRate
from vivavoce.records.run import BreachKind, DrawRecord, SampleTrials, Sampling

if TYPE_CHECKING:
    from vivavoce.stats.sampled import PopulationMean


@dataclass(frozen=True, slots=True)
class Population:
    """How each scored conversation was drawn (`drawn`), each without a score because of an error, and each `outside`.

    Those outside have no score because the grader does not apply to them.
    """

    sampling: Sampling
    drawn: Sequence[DrawRecord]
    missing: Sequence[DrawRecord] = ()
    outside: Sequence[DrawRecord] = ()

    def mean(
        self, values: Sequence[float], level: float = 0.95, bounds: tuple[float, float] = (0.0, 1.0)
    ) -> PopulationMean | None:
        """Return the mean over the population, from a value for each scored conversation; None where there is none.

        Conversations without a score because of an error are as the others of their stratum are.
        """
        estimate = lazy("vivavoce.stats.sampled:population_mean")  # numpy takes long to load, and few runs are drawn
        return cast("PopulationMean | None", estimate(values, *self._in_columns(), level, bounds))

    def weights(self) -> list[float]:
        """Return for how many conversations each scored one stands."""
        return cast("list[float]", lazy("vivavoce.stats.sampled:population_weights")(*self._in_columns()))

    def _in_columns(self) -> tuple[object, object, object]:
        units, design = lazy("vivavoce.stats.sampled:Units"), lazy("vivavoce.stats.sampled:Design")
        strata = self.sampling.strata
        sizes = design([one.size for one in strata], [one.drawn for one in strata])
        return units(*_columns(self.drawn)), sizes, units(*_columns(self.outside))

    def filled(self, errors: int) -> Population:
        """Return it as if those with an error had a score, after the others; 0 errors change nothing."""
        return replace(self, drawn=[*self.drawn, *self.missing], missing=()) if errors else self


def _columns(drawn: Sequence[DrawRecord]) -> tuple[list[int], list[float]]:
    return [one.stratum for one in drawn], [one.probability for one in drawn]


MAX_VALUES = 2_000
"""Possible values that are listed; where there are more, any number between the ends counts as possible."""


@dataclass(frozen=True, slots=True)
class Possible:
    """The numbers from `low` to `high`, both included: only those in `values`, any number between where that is None.

    A mean of scores can be any number between its ends; a rate of passing can only be some of them.
    """

    low: Fraction
    high: Fraction
    values: frozenset[Fraction] | None = None

    @classmethod
    def only(cls, value: Fraction) -> Possible:
        """Return that an aggregate is known."""
        return cls(value, value, frozenset((value,)))

    @classmethod
    def among(cls, values: Collection[Fraction]) -> Possible:
        """Return that an aggregate is one of some numbers."""
        return cls(min(values), max(values), frozenset(values) if len(values) <= MAX_VALUES else None)

    def plus(self, other: Possible) -> Possible:
        """Return what the sum with another can be, where neither depends on the other."""
        low, high = self.low + other.low, self.high + other.high
        mine, others = self._listed(), other._listed()
        if mine is None or others is None or len(mine) * len(others) > MAX_VALUES:
            return Possible(low, high)
        return Possible(low, high, frozenset(one + another for one in mine for another in others))

    def times(self, factor: Fraction) -> Possible:
        """Return what it can be after a multiplication by a factor that is not negative."""
        values = None if self.values is None else frozenset(value * factor for value in self.values)
        return Possible(self.low * factor, self.high * factor, values)

    def verdicts(self, op: Operator, limit: Number) -> set[bool]:
        """Return whether some of the numbers are on one side of a limit, and whether some are not."""
        ends = {compare(self.low, op, limit)}
        if self.low == self.high:
            return ends
        ends.add(compare(self.high, op, limit))
        return {*ends, self._contains(exact(limit))} if op == "eq" else ends

    def _contains(self, number: Fraction) -> bool:
        return self.low <= number <= self.high and (self.values is None or number in self.values)

    def _listed(self) -> frozenset[Fraction] | None:
        return frozenset((self.low,)) if self.low == self.high else self.values


_MAX_DIGITS = 18
"""Digits of a limit on errors; a larger number is a mistake."""


@dataclass(frozen=True, slots=True)
class ErrorLimit:
    """The limit on attempts with an error: a number, or a share such as `5%`; `name` is what a user sets it by.

    Raises:
        UsageError: it is neither.
    """

    text: str
    name: str = "--max-errors"

    def __post_init__(self) -> None:
        number = self.text.removesuffix("%")
        if not number.isdecimal() or len(number) > _MAX_DIGITS or (self.text.endswith("%") and int(number) > 100):
            raise UsageError(f"{self.name} must be a number or a percentage, such as 3 or 5%; got '{self.text}'")

    def exceeded(self, errors: int, attempts: int) -> bool:
        """Return whether there are more errors than allowed."""
        number = int(self.text.removesuffix("%"))
        return errors * 100 > number * attempts if self.text.endswith("%") else errors > number


_NO_TRIAL = -1
"""The trial of a missing score: no label is of it."""


class Corrects(Protocol):
    """A calibration of the judge that gave scores."""

    def rate(
        self, keys: Sequence[tuple[str, int]], passed: Sequence[bool], population: Population | None = None
    ) -> CorrectedRate:
        """Return the rate of passing without the errors of the judge, of the trials of samples with these keys.

        Where they were drawn, it is the rate of the `population`.
        """
        ...

    def unmet(self, need: CalibrationNeed) -> str | None:
        """Return what the judge lacks before it may decide, in words; None where it lacks nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a grader or of the reward: values, whether each passes, and its sample.

    `missing` has the sample of each trial without a score because of an error; those in `allowed` a limit on errors
    allows, so that no aggregate waits for them. `spoiled` has, of both, the samples of those trials that the tester
    spoiled that led the conversation. `trials` has the trial of each score, and `correction` the calibration
    of the judge, where there is one. `population` is what the scores stand for where conversations were drawn.
    `unverified` counts the scores that rest on evidence that is missing or not in the conversation. `breaches` has by
    kind the sample of each false statement and broken rule.
    """

    values: Sequence[float]
    passed: Sequence[bool]
    clusters: Sequence[str]
    missing: Sequence[str] = ()
    skipped: int = 0
    allowed: Sequence[str] = ()
    trials: Sequence[int] = ()
    correction: Corrects | None = None
    spoiled: Sequence[str] = ()
    population: Population | None = None
    unverified: int = 0
    breaches: Mapping[BreachKind, Sequence[str]] = field(default_factory=dict[BreachKind, Sequence[str]])

    def net_of_tester(self) -> Scores:
        """Return the scores as if the trials that the tester spoiled had not been made."""
        return replace(self, missing=[*(Counter(self.missing) - Counter(self.spoiled)).elements()], spoiled=())

    @property
    def errors(self) -> int:
        """How many scores are missing because of an error."""
        return len(self.missing)

    def filled(self, missing: float) -> Scores:
        """Return the scores as if every error had been `missing`."""
        values, passed = [*self.values, *[missing] * self.errors], [*self.passed, *[missing >= 1] * self.errors]
        trials = [*self.trials, *[_NO_TRIAL] * self.errors]
        clusters = [*self.clusters, *self.missing]
        population = self.population and self.population.filled(self.errors)
        more = {"trials": trials, "correction": self.correction, "population": population}
        return replace(Scores(values, passed, clusters, (), self.skipped), **more)

    def with_errors_failed(self) -> Scores:
        """Return the scores as if every error, also one that a limit allows, had been a score of 0 that did not pass.

        Each takes a trial of its sample that has no score.
        """
        missing = (*self.missing, *self.allowed)
        used: dict[str, set[int]] = {sample: set() for sample in missing}
        for sample, trial in zip(self.clusters, self.trials, strict=False):
            if sample in used:
                used[sample].add(trial)
        trials: list[int] = []
        for sample in missing:
            trials.append(next(trial for trial in count() if trial not in used[sample]))
            used[sample].add(trials[-1])
        filled = replace(self, missing=missing).filled(0.0)
        return replace(filled, trials=[*self.trials, *trials])

    def corrected(self) -> CorrectedRate | None:
        """Return the rate of passing without the errors of the judge, None where nobody calibrated it."""
        if self.correction is None:
            return None
        keys = list(zip(self.clusters, self.trials, strict=True))
        return self.correction.rate(keys, self.passed, self.population)

    def by_sample(self) -> list[SampleTrials]:
        """Return how often each sample passed, of how many scores, and how many are missing."""
        counts = {sample: [0, 0, 0] for sample in (*self.clusters, *self.missing, *self.allowed)}
        for sample, passed in zip(self.clusters, self.passed, strict=True):
            counts[sample][0] += passed
            counts[sample][1] += 1
        for sample in self.missing:
            counts[sample][2] += 1
        return [SampleTrials(sample_id=one, passed=p, scored=n, errors=e) for one, (p, n, e) in counts.items()]
