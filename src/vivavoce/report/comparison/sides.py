"""The sides of a comparison, each a graded run or a baseline in a file, and which of their samples belong together."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vivavoce.errors import UsageError
from vivavoce.records.run import Grading, Run
from vivavoce.records.score import State
from vivavoce.report.details import check_even
from vivavoce.report.graded_run import GradedRun, partial_note
from vivavoce.report.text import strict_json
from vivavoce.store.browse.scenarios import GraderScores, ScenarioScores

Scenario: TypeAlias = str | frozenset[str]
"""The content of a sample; several if every recorded trial is a conversation of its own."""

Scenarios: TypeAlias = Mapping[str, Scenario]
"""The scenario of each sample."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs of sample ids, first side and second, and the ids without a match."""

    pairs: tuple[tuple[str, str], ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def scenarios_of(samples: Sequence[str], scenarios: Sequence[str]) -> dict[str, Scenario]:
    """Return the scenario of each sample, from the sample and the scenario of each attempt."""
    scenarios_by_sample: dict[str, Scenario] = dict(zip(samples, scenarios, strict=True))
    if len(scenarios_by_sample) == len(samples):
        return scenarios_by_sample
    scenarios_by_sample = {}
    for sample, scenario in zip(samples, scenarios, strict=True):
        known = scenarios_by_sample.setdefault(sample, scenario)
        if known != scenario:
            scenarios_by_sample[sample] = (frozenset((known,)) if isinstance(known, str) else known) | {scenario}
    return scenarios_by_sample


def pair(a: Scenarios, b: Scenarios) -> Pairing:
    """Pair the samples of two sides with the same content, whatever their ids.

    If several samples of a side share a scenario, samples with the same id are paired.
    """
    (firsts_a, shared_a), (firsts_b, shared_b) = _by_scenario(a), _by_scenario(b)
    if not shared_a and not shared_b:
        pairs = [(sample, firsts_b[scenario]) for scenario, sample in firsts_a.items() if scenario in firsts_b]
    else:
        pairs = list(_shared_pairs(firsts_a, shared_a, firsts_b, shared_b))
    return Pairing(
        tuple(pairs), _find_unpaired(a, [first for first, _ in pairs]), _find_unpaired(b, [other for _, other in pairs])
    )


def _shared_pairs(
    firsts_a: Mapping[Scenario, str],
    shared_a: Mapping[Scenario, Sequence[str]],
    firsts_b: Mapping[Scenario, str],
    shared_b: Mapping[Scenario, Sequence[str]],
) -> Iterator[tuple[str, str]]:
    """Yield the pairs where several samples of a side share a scenario."""
    for scenario, sample in firsts_a.items():
        other = firsts_b.get(scenario)
        if other is None:
            continue
        if scenario in shared_a or scenario in shared_b:
            same = set(shared_b.get(scenario, [other]))
            yield from ((known, known) for known in shared_a.get(scenario, [sample]) if known in same)
        else:
            yield sample, other


def _find_unpaired(samples: Scenarios, paired_samples: Sequence[str]) -> tuple[str, ...]:
    """Return the samples that are in no pair; none is in two."""
    if len(paired_samples) == len(samples):
        return ()
    known = set(paired_samples)
    return tuple(sample for sample in samples if sample not in known)


def _by_scenario(samples: Scenarios) -> tuple[dict[Scenario, str], dict[Scenario, list[str]]]:
    """Return the first sample of each scenario, and all samples of those that have several."""
    firsts = dict(zip(samples.values(), samples, strict=True))
    if len(firsts) == len(samples):
        return firsts, {}
    firsts = dict[Scenario, str]()
    shared: dict[Scenario, list[str]] = {}
    for sample, scenario in samples.items():
        first = firsts.setdefault(scenario, sample)
        if first != sample:
            shared.setdefault(scenario, [first]).append(sample)
    return firsts, shared


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
class SampleScores:
    """The scores of one grader for the samples of a target, in their order.

    `values` are the means over the trials, NaN where no trial has a score; `passes` says whether all of these pass,
    `never` whether none does, and `broken` whether a trial could not be scored.
    """

    values: NDArray[np.float64]
    passes: NDArray[np.bool_]
    never: NDArray[np.bool_]
    broken: NDArray[np.bool_]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which samples have a score."""
        return ~np.isnan(self.values)

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Which samples have no score because of errors."""
        return self.broken & ~self.scored

    def at(self, places: NDArray[np.intp]) -> SampleScores:
        """Return the scores of the samples at some places."""
        return SampleScores(self.values[places], self.passes[places], self.never[places], self.broken[places])


@dataclass(frozen=True, slots=True)
class GradedTarget:
    """A target of one side: the scenarios of its samples, and its attempts by their places in `scores`.

    `owners` has the sample of each of these attempts, by its place in `samples`.
    """

    scores: ScenarioScores
    samples: Scenarios
    attempts: NDArray[np.intp]
    owners: NDArray[np.intp]

    def states(self, grader: str) -> Counter[str]:
        """Return how many of its attempts have a score, and how many have none, by their state."""
        of = self.scores.graders[grader]
        mine = np.zeros(len(self.scores.samples), dtype=np.bool_)
        mine[self.attempts] = True
        counts = Counter[str](state for place, state in of.unscored.items() if mine[place])
        measured = sum(mine[place] for place in of.measured)
        counts["scored"] = int(np.count_nonzero(~np.isnan(of.values[self.attempts])) + measured)
        return counts

    def means(self, grader: str) -> SampleScores:
        """Return the mean over the trials of each sample."""
        of = self.scores.graders[grader]
        return self._pool(of.values, of.passes, _error_mask(of))

    def means_with(self, grader: str, missing: float) -> SampleScores:
        """Return what `means` does, as if every score that is missing because of an error had been `missing`."""
        of = self.scores.graders[grader]
        broken = _error_mask(of)
        return self._pool(np.where(broken, missing, of.values), of.passes | (broken & (missing >= 1)), broken)

    def measurements(self, grader: str) -> NDArray[np.float64]:
        """Return the mean of the measurements of each sample, NaN where a sample has none."""
        of = self.scores.graders[grader].measured
        numbers = np.full(len(self.scores.samples), np.nan)
        numbers[list(of)] = list(of.values())
        nothing = np.zeros(len(numbers), dtype=np.bool_)
        return self._pool(numbers, nothing, nothing).values

    def attempts_of(self, samples: NDArray[np.intp]) -> list[tuple[int, str]]:
        """Return the numbers of the attempts of some samples, given by their places, each with its sample."""
        mask = np.zeros(len(self.samples), dtype=np.bool_)
        mask[samples] = True
        places: list[int] = self.attempts[mask[self.owners]].tolist()
        return [(self.scores.numbers[place], self.scores.samples[place]) for place in places]

    def has_errors(self, grader: str) -> bool:
        """Say whether an attempt could not be scored."""
        return bool(_error_mask(self.scores.graders[grader])[self.attempts].any())

    def _pool(self, values: NDArray[np.float64], passes: NDArray[np.bool_], broken: NDArray[np.bool_]) -> SampleScores:
        values, passes, broken = values[self.attempts], passes[self.attempts], broken[self.attempts]
        scored = ~np.isnan(values)
        if len(self.attempts) == len(self.samples):
            return SampleScores(values, passes, scored & ~passes, broken)
        counts = self._counts(scored)
        passed = self._counts(scored & passes)
        ordered = values[scored][np.argsort(self.owners[scored], kind="stable")].tolist()
        means, start = np.full(len(self.samples), np.nan), 0
        for sample, count in enumerate(counts.tolist()):
            if count:
                means[sample] = math.fsum(ordered[start : start + count]) / count
                start += count
        some = counts > 0
        return SampleScores(means, some & (passed == counts), some & (passed == 0), self._counts(broken) > 0)

    def _counts(self, mask: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return how many attempts of each sample are chosen."""
        return np.bincount(self.owners[mask], minlength=len(self.samples))


def _error_mask(scores: GraderScores) -> NDArray[np.bool_]:
    """Return which attempts could not be scored."""
    mask = np.zeros(len(scores.values), dtype=np.bool_)
    mask[[place for place, state in scores.unscored.items() if state == "error"]] = True
    return mask


@dataclass(frozen=True, slots=True)
class GradedSide:
    """One side, by target; `grading` is None where the store does not have it."""

    origin: Origin
    graders: Sequence[str]
    targets: Mapping[str, GradedTarget]
    grading: Grading | None = None


def side_of(origin: Origin, scores: ScenarioScores, grading: Grading | None = None) -> GradedSide:
    """Return the side of a comparison with these scores."""
    targets: dict[str, GradedTarget] = {}
    targets_by_attempt = np.array(scores.targets, dtype=object)
    for target in dict.fromkeys(scores.targets):
        attempts = np.flatnonzero(targets_by_attempt == target)
        mine = attempts.tolist()
        names = [scores.samples[place] for place in mine]
        samples = scenarios_of(names, [scores.scenarios[place] for place in mine])
        numbers = {sample: number for number, sample in enumerate(samples)}
        owners = np.fromiter(map(numbers.__getitem__, names), dtype=np.intp, count=len(names))
        targets[target] = GradedTarget(scores, samples, attempts, owners)
    return GradedSide(origin, list(scores.graders), targets, grading)


MAKE_ONE = "create one with: viva export RUN --format baseline --output FILE"
"""The next step of somebody whose file is not a baseline."""


_COLUMNS = ("sample", "target", "scenario")


class BaselineAttempt(BaseModel):
    """One conversation: a hash of what was asked, and by grader the value with whether it passes, or the state.

    A measurement is a number alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample: str
    target: str
    scenario: str
    scores: dict[str, tuple[Annotated[float, Field(ge=0, le=1)], bool] | float | State]


class Baseline(BaseModel):
    """The scores of a run, with what decided them; `graders` are in the order of the run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: Literal[1] = 1
    origin: Origin
    graders: list[str]
    attempts: list[BaselineAttempt]

    @property
    def side(self) -> GradedSide:
        """The baseline as a side of a comparison."""
        samples, targets, scenarios = ([getattr(attempt, name) for attempt in self.attempts] for name in _COLUMNS)
        graders = {name: _scores(name, self.attempts) for name in self.graders}
        return side_of(self.origin, ScenarioScores(samples, targets, scenarios, graders))


def write_baseline(graded: GradedRun, out: TextIO) -> None:
    """Write the baseline that a run makes, a line for each conversation, so that changes of it can be reviewed.

    Raises:
        UsageError: the run is partial or not complete, its conversations were drawn with unequal probabilities, or
        nothing was scored.
    """
    if partial := partial_note(graded.run):
        raise UsageError(f"{graded.run.id} is {partial}")
    check_even(graded.run, "it cannot be a baseline")
    if not graded.ended:
        raise UsageError(
            f"{graded.run.id} is not complete, so it cannot be a baseline; continue it with viva run --resume"
        )
    scores = graded.store.scenarios.scores(graded.grading)
    if not any(np.isfinite(grader.values).any() or grader.measured for grader in scores.graders.values()):
        raise UsageError(f"the grading '{graded.grading.id}' has no scores, so it cannot be a baseline")
    origin = Origin.of(graded.run, graded.grading)
    head = f'"baseline":1,\n"origin":{strict_json(origin.model_dump())},\n"graders":{strict_json(list(scores.graders))}'
    lines = (strict_json(_attempt(scores, number).model_dump()) for number in range(len(scores.samples)))
    out.write(f'{{\n{head},\n"attempts":[\n' + ",\n".join(lines) + "\n]\n}\n")


def read_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        UsageError: the file cannot be read, or is not a baseline.
    """
    try:
        baseline = Baseline.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}; {MAKE_ONE}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is not a baseline: {place or 'the file'}: {first['msg']}; {MAKE_ONE}") from error
    except ValueError as error:
        raise UsageError(f"{path} is not a baseline: it is not JSON ({error}); {MAKE_ONE}") from error
    unknown = next(
        (name for attempt in baseline.attempts for name in attempt.scores if name not in baseline.graders), None
    )
    if unknown is not None:
        raise UsageError(f"{path} is not a baseline: it has scores of '{unknown}', which is not among its graders")
    return baseline


def _scores(name: str, attempts: Sequence[BaselineAttempt]) -> GraderScores:
    """Return the scores of one grader."""
    values, passes = np.full(len(attempts), np.nan), np.zeros(len(attempts), dtype=np.bool_)
    unscored: dict[int, State] = {}
    measured: dict[int, float] = {}
    for place, attempt in enumerate(attempts):
        match attempt.scores.get(name):
            case None:
                pass
            case str() as state:
                unscored[place] = state
            case int() | float() as number:
                measured[place] = float(number)
            case value, passed:
                values[place], passes[place] = value, passed
    return GraderScores(values, passes, unscored, measured)


def _attempt(scenario_scores: ScenarioScores, place: int) -> BaselineAttempt:
    scores: dict[str, tuple[float, bool] | float | State] = {}
    for name, of in scenario_scores.graders.items():
        if not np.isnan(of.values[place]):
            scores[name] = float(of.values[place]), bool(of.passes[place])
        elif place in of.measured:
            scores[name] = of.measured[place]
        elif (state := of.unscored.get(place)) is not None:
            scores[name] = state
    sample, target, scenario = (
        scenario_scores.samples[place],
        scenario_scores.targets[place],
        scenario_scores.scenarios[place],
    )
    return BaselineAttempt(sample=sample, target=target, scenario=scenario, scores=scores)
