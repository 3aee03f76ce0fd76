"""The summary of a run: the result of each grader, with n and interval, and the verdict of the gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.grading.error_limit import ErrorLimit
from vivavoce.grading.gates import EveryPass, Gate, at_any_time
from vivavoce.grading.population import Population
from vivavoce.grading.scores import Corrects, Scores
from vivavoce.records.as_recorded import RecordingSummary
from vivavoce.records.calibration import CorrectedRate
from vivavoce.records.details import AgentSummary, Latency, VarianceSummary
from vivavoce.records.reason import Reason, Verdict
from vivavoce.records.run import AttemptKey, ScoreRow
from vivavoce.records.sampling import Drawn, Sampling
from vivavoce.records.score import State, reaches
from vivavoce.records.trials import TrialsSpent
from vivavoce.records.usage import Usage
from vivavoce.run.target_differences import TargetDifference, target_differences
from vivavoce.stats.agreement import agreement
from vivavoce.stats.intervals import Estimate, mean_interval, spoiled_bounds
from vivavoce.stats.passes import passes

if TYPE_CHECKING:  # what reads a summary need not load all that a suite may name
    from vivavoce.grading.grader import Grader

Correct = Callable[[str, str], Corrects | None]
"""Gives the calibration that corrects what a target has from a grader, None where there is none."""

Intervals = Literal["fixed", "any_time", "none"]
"""Which interval a mean has: for a number of trials that was fixed before, or one that holds at any time; or none."""

LEVEL = 0.95
"""The level of the intervals of a summary."""

_RANK: dict[Verdict, int] = {"pass": 0, "inconclusive": 1, "fail": 2}


class GraderSummary(BaseModel):
    """One grader (or the reward) against one target.

    `label` is the name to display where the suite gives one. `low` and `high` are the 95% interval of the mean,
    clustered by sample; `pass_rate` is the share of scores that pass, with its interval from `pass_low` to `pass_high`;
    `pass_at` and `pass_hat` map k to pass@k and pass^k over the samples, counted in `pass_samples`, that have so many
    scored trials. Of the errors, `tester_errors` were made by the tester that led the conversations: `pass_rate` is net
    of them, `raw_pass_rate` counts them as not passed and `highest_pass_rate` as passed, which are bounds for what a
    tester without faults would have found; both are None if there are none. `corrected` is the rate of
    passing without the errors of the judge, or why there is none, where the judge was calibrated. Where the
    conversations were drawn from more, `population` counts all of them: the mean, the rate of passing and their
    intervals are estimates for all, and counts are of those that were drawn.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    label: str | None = None
    scored: int
    errors: int
    skipped: int
    samples: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    pass_rate: float | None = None
    pass_low: float | None = None
    pass_high: float | None = None
    tester_errors: int = 0
    raw_pass_rate: float | None = None
    highest_pass_rate: float | None = None
    pass_at: dict[int, float] = Field(default_factory=dict[int, float])
    pass_hat: dict[int, float] = Field(default_factory=dict[int, float])
    pass_samples: dict[int, int] = Field(default_factory=dict[int, int])
    corrected: CorrectedRate | None = None
    population: int | None = None


class TagSummary(BaseModel):
    """The results of the samples with one tag, by grader."""

    model_config = ConfigDict(frozen=True)

    tag: str
    graders: list[GraderSummary]


class AgreementPair(NamedTuple):
    """Two graders to compare; a pass counts as yes, or with a `threshold` any score from there on."""

    predictor: str
    truth: str
    threshold: float | None = None


class AgreementSummary(BaseModel):
    """How well one grader predicts another, over the attempts that both scored."""

    model_config = ConfigDict(frozen=True)

    predictor: str
    truth: str
    n: int
    left_out: int
    precision: float | None
    recall: float | None
    accuracy: float | None
    kappa: float | None
    tp: int
    fp: int
    fn: int
    tn: int


class Summary(BaseModel):
    """The summary of a whole run.

    `verdict` is None if there is neither a gate nor an assertion, and so nothing can fail. It is `inconclusive` if a
    grader has no score because of errors, if nothing at all was scored, if more conversations had an error than the run
    allows (without a gate: any), or if the run was stopped early, as `stopped` says. `failed_attempts` counts
    conversations that ended with an error; `error_attempts` also counts those with a missing score because of an error;
    of these, the tester spoiled `tester_error_attempts`.
    `usage` is by role; `tags` are the tags of samples, of many those with the most samples, and `more_tags` is how
    many others there are; `variance` is of the graders for which trials or judgements
    repeat. `agents` are those of targets that are made of several, of many those that fail most, and `more_agents` is
    how many others there are; `unnamed_failures` counts what failed in their conversations without telling of whom.
    `trials` says how many were made where fewer than planned could be enough; the intervals of means then hold at any
    time, and are of these samples and not of others like them. `recording` says by target how far conversations went
    as they were recorded, where the run has a recording. `sampling` says how the conversations were drawn, where not
    all of a dataset run. `differences` say how far the target with the highest mean is above each other one.
    """

    model_config = ConfigDict(frozen=True)

    attempts: int
    failed_attempts: int
    error_attempts: int = 0
    tester_error_attempts: int = 0
    graders: list[GraderSummary]
    agreement: list[AgreementSummary] = Field(default_factory=lambda: list[AgreementSummary]())
    verdict: Verdict | None = None
    reasons: list[Reason] = Field(default_factory=list[Reason])
    stopped: str | None = None
    usage: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    latency: list[Latency] = Field(default_factory=list[Latency])
    tags: list[TagSummary] = Field(default_factory=list[TagSummary])
    more_tags: int = 0
    variance: list[VarianceSummary] = Field(default_factory=list[VarianceSummary])
    agents: list[AgentSummary] = Field(default_factory=list[AgentSummary])
    more_agents: int = 0
    unnamed_failures: int = 0
    trials: TrialsSpent | None = None
    recording: list[RecordingSummary] = Field(default_factory=list[RecordingSummary])
    differences: list[TargetDifference] = Field(default_factory=list[TargetDifference])
    sampling: Sampling | None = None

    def grader(self, name: str, target: str | None = None) -> GraderSummary:
        """Return the summary of a grader, of the first target unless one is named."""
        return next(g for g in self.graders if g.name == name and target in (None, g.target))

    def stopped_by(self, why: str, planned: int | None = None) -> Summary:
        """Return the summary of a run that ended early and has no verdict.

        `why` is one word, such as `interrupted`, or a sentence; `planned` is the planned number of conversations.
        """
        of = "" if planned is None else f" of {planned:,}"
        after = f"after {self.attempts:,}{of} conversation{'s' * ((planned or self.attempts) != 1)}"
        stopped = f"{why} {after}" if why.isalpha() else f"stopped {after}: {why}"
        return self.model_copy(update={"verdict": "inconclusive", "stopped": stopped})


@dataclass(slots=True)
class Tally:
    """The scores of one grader against one target, as they come in; `sampling` says how their conversations were drawn.

    `drawn` says it of each score, `undecided` of each error, and `outside` of what the grader does not apply to.
    """

    values: list[float] = field(default_factory=list[float])
    samples: list[str] = field(default_factory=list[str])
    keys: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    passed: list[bool] = field(default_factory=list[bool])
    missing: list[str] = field(default_factory=list[str])
    spoiled: list[AttemptKey] = field(default_factory=list[AttemptKey])
    skipped: int = 0
    intervals: Intervals = "fixed"
    sampling: Sampling | None = None
    drawn: list[Drawn] = field(default_factory=list[Drawn])
    undecided: list[Drawn] = field(default_factory=list[Drawn])
    outside: list[Drawn] = field(default_factory=list[Drawn])

    def add(self, row: ScoreRow) -> None:
        """Count one score."""
        if row.state == "scored" and row.value is not None:
            self.values.append(row.value)
            self.samples.append(row.key.sample_id)
            self.keys.append((row.key.sample_id, row.key.trial))
            self.passed.append(row.passed is True)
        elif row.state == "error":
            self.missing.append(row.key.sample_id)
            self.spoiled += [row.key] * row.tester_error
        else:
            self.skipped += 1
        if row.drawn is not None:
            self._of_state(row.state).append(row.drawn)

    def _of_state(self, state: State) -> list[Drawn]:
        return self.drawn if state == "scored" else self.undecided if state == "error" else self.outside

    @property
    def population(self) -> Population | None:
        """What the scores stand for, None where they are all that there is."""
        if self.sampling is None:
            return None
        return Population(self.sampling, self.drawn, self.undecided, self.outside)

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
        return replace(found, spoiled=spoiled, population=self.population)


Tallies = dict[tuple[str, str], Tally]
"""By target and by grader."""


def tally(rows: Iterable[ScoreRow], intervals: Intervals = "fixed", sampling: Sampling | None = None) -> Tallies:
    """Count the scores of a run, one stream of rows, target by target and grader by grader."""
    tallies: Tallies = defaultdict(lambda: Tally(intervals=intervals, sampling=sampling))
    for row in rows:
        tallies[row.key.target, row.name].add(row)
    return dict(tallies)


def summarise(
    tallies: Tallies,
    *,
    attempts: int,
    failed: int,
    gate: Gate | None,
    pairs: Sequence[AgreementPair] = (),
    graders: Sequence[Grader] = (),
    errors: int = 0,
    limit: ErrorLimit | None = None,
    correct: Correct | None = None,
) -> Summary:
    """Return the summary of a run; a gate passes only if it passes for every target.

    `errors` is the number of attempts with an error of any kind, and `limit` the number allowed. `correct` gives the
    calibration of a grader for a target.
    """
    verdict, reasons = _decide(tallies, gate, correct, errors, attempts, limit)
    known = {grader.name: grader for grader in graders}
    return Summary(
        attempts=attempts,
        failed_attempts=failed,
        sampling=next((one.sampling for one in tallies.values()), None),
        error_attempts=errors,
        tester_error_attempts=spoiled_attempts(tallies),
        graders=[grader_summary(target, name, found, known.get(name)) for (target, name), found in tallies.items()],
        differences=target_differences(tallies),
        agreement=[_agreement(tallies, pair) for pair in pairs],
        verdict=verdict,
        reasons=reasons,
    )


def spoiled_attempts(tallies: Tallies) -> int:
    """Return how many conversations lack a score because of the tester that led them."""
    return len({key for found in tallies.values() for key in found.spoiled})


def grader_summary(target: str, name: str, found: Tally, grader: Grader | None) -> GraderSummary:
    """Return the result of a grader against a target."""
    passed = found.passed
    trials: dict[str, list[bool]] = defaultdict(list)
    for sample, one in zip(found.samples, passed, strict=True):
        trials[sample].append(one)
    rate = _estimate(found, [float(one) for one in passed])
    estimate = _estimate(found, found.values)
    return GraderSummary(
        name=name,
        target=target,
        label=grader and grader.label,
        scored=len(found.values),
        errors=found.errors,
        skipped=found.skipped,
        samples=len(trials),
        mean=estimate and estimate.mean,
        low=estimate and estimate.low,
        high=estimate and estimate.high,
        pass_rate=rate and rate.mean,
        pass_low=rate and rate.low,
        pass_high=rate and rate.high,
        tester_errors=len(found.spoiled),
        population=found.sampling and found.sampling.population,
        **spoiled_bounds(sum(passed), len(passed), len(found.spoiled)),
        **_passes([] if found.sampling else [(sum(trial), len(trial)) for trial in trials.values()]),
    )


def _estimate(found: Tally, values: Sequence[float]) -> Estimate | None:
    """Return the mean of values, one for each score, with the interval that it may have."""
    if found.population is not None:
        drawn = found.population.mean(values)
        return drawn and Estimate(drawn.mean, drawn.low, drawn.high, drawn.n, len(set(found.samples)))
    if found.intervals == "fixed" or not values:
        return mean_interval(values, found.samples)
    mean, n = sum(values) / len(values), len(values)
    low, high = None, None
    if found.intervals == "any_time":
        low, high = at_any_time(found.scores, values, LEVEL)
        low, high = min(low, mean), max(high, mean)  # rounds weigh differently, so a drift could leave the mean outside
    return Estimate(mean, low, high, n, len(set(found.samples)))


def _passes(counts: list[tuple[int, int]]) -> dict[str, Any]:
    most = max((n for _, n in counts), default=0)
    if most < 2:
        return {}
    found = {k: passes(counts, k) for k in range(1, most + 1)}
    return {
        "pass_at": {k: p.at_k for k, p in found.items() if p},
        "pass_hat": {k: p.hat_k for k, p in found.items() if p},
        "pass_samples": {k: p.samples for k, p in found.items() if p},
    }


def _agreement(tallies: Tallies, pair: AgreementPair) -> AgreementSummary:
    predicted, truth = _answers(tallies, pair.predictor, pair.threshold), _answers(tallies, pair.truth, pair.threshold)
    both = [key for key in predicted if key in truth]
    found = agreement([predicted[key] for key in both], [truth[key] for key in both])
    return AgreementSummary(
        predictor=pair.predictor,
        truth=pair.truth,
        n=len(both),
        left_out=len(predicted.keys() ^ truth.keys()),
        precision=found.precision,
        recall=found.recall,
        accuracy=found.accuracy,
        kappa=found.kappa,
        tp=found.tp,
        fp=found.fp,
        fn=found.fn,
        tn=found.tn,
    )


def _answers(tallies: Tallies, name: str, threshold: float | None) -> dict[tuple[str, str, int], bool]:
    return {
        (target, *key): passed if threshold is None else reaches(value, threshold)
        for (target, grader), found in tallies.items()
        if grader == name
        for key, value, passed in zip(found.keys, found.values, found.passed, strict=True)
    }


def _decide(
    tallies: Tallies,
    gate: Gate | None,
    correct: Correct | None,
    errors: int,
    attempts: int,
    limit: ErrorLimit | None,
) -> tuple[Verdict | None, list[Reason]]:
    silent = _silent(tallies)
    if not any(found.values for found in tallies.values()):
        return "inconclusive", silent or [Reason(verdict="inconclusive", code="nothing_scored")]
    verdict, reasons = _by_gate(tallies, gate, correct, tolerant=limit is not None)
    known = {(reason.target, *reason.graders) for reason in reasons if reason.code == "nothing_scored"}
    reasons += [reason for reason in silent if (reason.target, *reason.graders) not in known]
    if silent and verdict != "fail":
        verdict = "inconclusive"
    written = gate is not None and not isinstance(gate, EveryPass)
    most = limit if limit is not None or written else ErrorLimit("0")
    if most is not None and most.exceeded(errors, attempts):
        spoiled = spoiled_attempts(tallies)
        about = {"errors": errors, "tester_errors": spoiled, "limit": most.text}
        reasons.append(Reason.model_validate({"verdict": "inconclusive", "code": "errors", **about}))
        verdict = verdict if verdict == "fail" else "inconclusive"
    return verdict, reasons


def _silent(tallies: Tallies) -> list[Reason]:
    """Return a reason for each grader without any score because of errors."""
    several = len({target for target, _ in tallies}) > 1
    return [
        Reason(
            verdict="inconclusive",
            code="nothing_scored",
            graders={name: 1.0},
            target=target if several else None,
            errors=counted.errors,
            tester_errors=len(counted.spoiled),
        )
        for (target, name), counted in tallies.items()
        if counted.errors and not counted.values
    ]


def _by_gate(
    tallies: Tallies, gate: Gate | None, correct: Correct | None, *, tolerant: bool
) -> tuple[Verdict | None, list[Reason]]:
    """Return the worst verdict over the targets; a `tolerant` one uses the scores that exist."""
    if gate is None:
        return None, []
    targets = list(dict.fromkeys(target for target, _ in tallies))
    worst: Verdict = "pass"
    reasons: list[Reason] = []
    for target in targets:
        by_name = {name: found.scores for (t, name), found in tallies.items() if t == target}
        if correct is not None:
            by_name = {name: replace(one, correction=correct(target, name)) for name, one in by_name.items()}
        if tolerant:
            by_name = {name: replace(one, missing=(), allowed=one.missing) for name, one in by_name.items()}
        result = gate.decide(_Defaulting(by_name))
        worst = max(worst, result.verdict, key=_RANK.__getitem__)
        named = {"target": target if len(targets) > 1 else None}
        reasons += [reason.model_copy(update=named) for reason in result.reasons]
    return worst, reasons


class _Defaulting(dict[str, Scores]):
    """Scores by grader; a grader without scores has an empty entry."""

    def __missing__(self, key: str) -> Scores:
        return Scores([], [], [])
