"""The scores of a run as they come in, by grader and target, and how its targets differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import BaseModel, ConfigDict

from vivavoce.grading.scores import Corrects, Population, Scores
from vivavoce.plugins import lazy
from vivavoce.records.run import AttemptKey, BreachKind, DrawRecord, Sampling, ScoreRow
from vivavoce.records.score import State


class TargetDifference(BaseModel):
    """The highest mean of a grader less that of another target, over the `n` samples that both have a score of.

    The interval has the `level` 1 - 0.05 / m for m other targets, so that all of them hold together with 95%. Its ends
    are None for a single pair. It is the interval that `compare` gives for the two targets.

    Source: O. J. Dunn, Multiple Comparisons Among Means (1961), by the inequality of C. E. Bonferroni.
    """

    model_config = ConfigDict(frozen=True)

    grader: str
    target: str
    other: str
    n: int
    difference: float
    low: float | None
    high: float | None
    level: float


def target_differences(tallies: Tallies) -> list[TargetDifference]:
    """Return for each grader how the target with the highest mean differs from each other one, sample by sample.

    Conversations that were drawn with unequal probabilities cannot be compared one by one, and give none.
    """
    by_grader: dict[str, dict[str, Tally]] = {}
    for (target, grader), scores in tallies.items():
        if scores.values and (scores.sampling is None or scores.sampling.even):
            by_grader.setdefault(grader, {})[target] = scores
    return [one for grader, scored in by_grader.items() for one in _of_grader(grader, scored)]


def _of_grader(grader: str, scored: Mapping[str, Tally]) -> Iterator[TargetDifference]:
    if len(scored) < 2:
        return
    by_sample = {target: _by_sample(scores.samples, scores.values) for target, scores in scored.items()}
    highest = max(scored, key=lambda target: math.fsum(scored[target].values) / len(scored[target].values))
    level = 1 - 0.05 / (len(scored) - 1)
    for other in scored:
        if other == highest:
            continue
        found = lazy("vivavoce.stats.paired:paired_difference")(by_sample[other], by_sample[highest], level)
        if found is not None:
            yield TargetDifference(
                grader=grader,
                target=highest,
                other=other,
                n=found.n,
                difference=found.mean,
                low=found.low,
                high=found.high,
                level=level,
            )


def _by_sample(samples: Sequence[str], values: Sequence[float]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for sample, value in zip(samples, values, strict=True):
        scores.setdefault(sample, []).append(value)
    return scores


Correct = Callable[[str, str], Corrects | None]
"""Gives the calibration that corrects what a target has from a grader, None where there is none."""

Intervals = Literal["fixed", "any_time", "none"]
"""Which interval a mean has: for a number of trials that was fixed before, or one that holds at any time; or none."""


@dataclass(slots=True)
class Tally:
    """The scores of one grader against one target, as they come in; `sampling` says how their conversations were drawn.

    `drawn` says it of each score, `undecided` of each error, and `outside` of what the grader does not apply to.
    `breaches` has by kind the sample of each false statement and broken rule. `measured` has the sample and the
    number of each score that is a measurement; these are not among the `values`, and neither pass nor fail.
    """

    values: list[float] = field(default_factory=list[float])
    measured: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    samples: list[str] = field(default_factory=list[str])
    keys: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    passed: list[bool] = field(default_factory=list[bool])
    missing: list[str] = field(default_factory=list[str])
    spoiled: list[AttemptKey] = field(default_factory=list[AttemptKey])
    skipped: int = 0
    unverified: int = 0
    breaches: dict[BreachKind, list[str]] = field(default_factory=dict[BreachKind, list[str]])
    intervals: Intervals = "fixed"
    sampling: Sampling | None = None
    drawn: list[DrawRecord] = field(default_factory=list[DrawRecord])
    undecided: list[DrawRecord] = field(default_factory=list[DrawRecord])
    outside: list[DrawRecord] = field(default_factory=list[DrawRecord])

    def add(self, row: ScoreRow) -> None:
        """Count one score."""
        self.unverified += row.unverified
        for kind in row.breaches:
            self.breaches.setdefault(kind, []).append(row.key.sample_id)
        if row.state == "scored" and row.value is not None:
            self.values.append(row.value)
            self.samples.append(row.key.sample_id)
            self.keys.append((row.key.sample_id, row.key.trial))
            self.passed.append(row.passed is True)
        elif row.measured is not None:
            self.measured.append((row.key.sample_id, row.measured))
        elif row.state == "error":
            self.missing.append(row.key.sample_id)
            self.spoiled += [row.key] * row.tester_error
        else:
            self.skipped += 1
        if row.drawn is not None:
            (self.outside if row.measured is not None else self._of_state(row.state)).append(row.drawn)

    def _of_state(self, state: State) -> list[DrawRecord]:
        return self.drawn if state == "scored" else self.undecided if state == "error" else self.outside

    @property
    def population(self) -> Population | None:
        """What the scores stand for, None where they are all that there is."""
        if self.sampling is None:
            return None
        return Population(self.sampling, self.drawn, self.undecided, self.outside)

    @property
    def scored(self) -> int:
        """How many trials have a score: a value, or the number of a measurement."""
        return len(self.values) + len(self.measured)

    @property
    def errors(self) -> int:
        """How many trials have no score because of an error."""
        return len(self.missing)

    @property
    def scores(self) -> Scores:
        """The scores as a gate reads them."""
        trials = [trial for _, trial in self.keys]
        spoiled = [key.sample_id for key in self.spoiled]
        found = Scores(self.values, self.passed, self.samples, self.missing, self.skipped, trials=trials)
        more = {"unverified": self.unverified, "breaches": self.breaches}
        return replace(found, spoiled=spoiled, population=self.population, **more)


Tallies = dict[tuple[str, str], Tally]
"""By target and by grader."""


def tally(rows: Iterable[ScoreRow], intervals: Intervals = "fixed", sampling: Sampling | None = None) -> Tallies:
    """Count the scores of a run, one stream of rows, target by target and grader by grader."""
    tallies: Tallies = defaultdict(lambda: Tally(intervals=intervals, sampling=sampling))
    for row in rows:
        tallies[row.key.target, row.name].add(row)
    return dict(tallies)


def spoiled_attempts(tallies: Tallies) -> int:
    """Return how many conversations lack a score because of the tester that led them."""
    return len({key for found in tallies.values() for key in found.spoiled})
