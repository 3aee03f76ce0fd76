"""`Scores`: what one grader said of the conversations of one target, as gates read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from vivavoce.grading.population import Population
from vivavoce.records.breaches import BreachKind
from vivavoce.records.calibration import CalibrationNeed, CorrectedRate
from vivavoce.records.reason import SampleTrials

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
