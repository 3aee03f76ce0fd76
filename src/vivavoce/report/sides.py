"""One side of a comparison, a graded run or a baseline: its targets, their samples, and what these scored."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import BaseModel, ConfigDict

from vivavoce.records.run import Grading, Run
from vivavoce.report.pairing import Scenarios, scenarios_of
from vivavoce.store.browse.scenarios import ScenarioScores, Scored


class Origin(BaseModel):
    """Where scores come from, and what decided them: the ids of their run and grading, and hashes.

    `fingerprints` has that of each grader, `reward` is that of how rewards are composed, and `tester` that of the
    tester that led the conversations, empty if there was none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    suite: str
    run: str
    grading: str
    fingerprints: dict[str, str]
    reward: str = ""
    tester: str = ""

    @classmethod
    def of(cls, run: Run, grading: Grading) -> Origin:
        """Return the origin of the scores of a grading."""
        composed = json.dumps([grading.spec.get("reward"), grading.fingerprints], sort_keys=True, default=str)
        return cls(
            suite=run.suite,
            run=run.id,
            grading=grading.id,
            fingerprints=grading.fingerprints,
            reward=hashlib.blake2b(composed.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
            tester=run.options.get("tester", ""),
        )

    def print_of(self, grader: str) -> str | None:
        """Return the fingerprint of a grader or of the reward; None if it is unknown."""
        return self.reward if grader == "reward" else self.fingerprints.get(grader)


@dataclass(frozen=True, slots=True)
class GradedTarget:
    """A target of one side: the scenarios of its samples, and the numbers of their attempts."""

    scores: ScenarioScores
    samples: Scenarios
    attempts: Mapping[str, Sequence[int]]
    numbers: frozenset[int]

    def states(self, grader: str) -> Counter[str]:
        """Return how many of its attempts have a score, and how many have none, by their state."""
        unscored = self.scores.unscored.get(grader, {})
        found = Counter[str](unscored[number] for number in self.numbers.intersection(unscored))
        found["scored"] = len(self.numbers.intersection(self.scores.scores.get(grader, {})))
        return found

    def means(self, grader: str) -> dict[str, Scored]:
        """Return the mean over the trials of each sample that has a score, and whether all of these pass."""
        return _means(self.attempts, self.scores.scores.get(grader, {}))

    def means_with(self, grader: str, missing: float) -> dict[str, Scored]:
        """Return what `means` does, as if every score that is missing because of an error had been `missing`."""
        lost, known = self._lost(grader), self.scores.scores.get(grader, {})
        filled = {**known, **dict.fromkeys(lost, (missing, missing >= 1))}
        broken = {sample: self.attempts[sample] for sample in self.broken(grader)}
        return {**_means(self.attempts, known), **_means(broken, filled)}

    def never(self, grader: str, samples: Iterable[str]) -> list[str]:
        """Return those of some samples that have scores of which none passes."""
        scores = self.scores.scores.get(grader, {})
        passed = {sample: [scores[n][1] for n in self.attempts[sample] if n in scores] for sample in samples}
        return [sample for sample, each in passed.items() if each and not any(each)]

    def broken(self, grader: str) -> set[str]:
        """Return the samples of which an attempt could not be scored."""
        return {self.scores.attempts[number].sample_id for number in self._lost(grader) & self.numbers}

    def _lost(self, grader: str) -> set[int]:
        return {number for number, state in self.scores.unscored.get(grader, {}).items() if state == "error"}


def _means(attempts: Mapping[str, Sequence[int]], scores: Mapping[int, Scored]) -> dict[str, Scored]:
    found: dict[str, Scored] = {}
    for sample, numbers in attempts.items():
        if len(numbers) > 1:
            of = [scores[number] for number in numbers if number in scores]
            if of:
                found[sample] = math.fsum(value for value, _ in of) / len(of), all(passed for _, passed in of)
        elif numbers[0] in scores:
            found[sample] = scores[numbers[0]]
    return found


@dataclass(frozen=True, slots=True)
class GradedSide:
    """One side, by target; `grading` is None where the store does not have it."""

    origin: Origin
    graders: Sequence[str]
    targets: Mapping[str, GradedTarget]
    grading: Grading | None = None


def side_of(origin: Origin, found: ScenarioScores, grading: Grading | None = None) -> GradedSide:
    """Return the side of a comparison with these scores."""
    samples = scenarios_of(found.attempts.values())
    numbers: dict[str, dict[str, tuple[int, ...]]] = {target: {} for target in samples}
    for number, (sample, target, _) in found.attempts.items():
        numbers[target][sample] = (*numbers[target].get(sample, ()), number)
    targets = {
        target: GradedTarget(found, samples[target], mine, frozenset(chain.from_iterable(mine.values())))
        for target, mine in numbers.items()
    }
    return GradedSide(origin, found.graders, targets, grading)
