"""The summary of a run: the result of each grader, with n and interval, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.comparing.thresholds import mean, reaches
from vivavoce.grading.gates import at_any_time
from vivavoce.plugins import lazy
from vivavoce.records.details import (
    AgentSummary,
    Latency,
    MeasurementSummary,
    RecordingSummary,
    SkipSummary,
    TrialsSpent,
    VarianceSummary,
)
from vivavoce.records.label import CorrectedRate
from vivavoce.records.run import BreachKind, Grading, Outcome, Reason, Run, Sampling, Severity, Verdict
from vivavoce.records.score import Usage
from vivavoce.run.tallies import Tallies, Tally, TargetDifference, spoiled_attempts, target_differences
from vivavoce.run.verdict import Rules, decide
from vivavoce.run.workers import INTERRUPTED
from vivavoce.samples.table import Tabular
from vivavoce.stats.agreement import agreement
from vivavoce.stats.intervals import LEVEL, Estimate, mean_interval, passes_by_k, spoiled_bounds

if TYPE_CHECKING:
    from vivavoce.grading.grader import Grader
    from vivavoce.run.experiment import AgreementPair
    from vivavoce.store.store import Store


class GraderSummary(BaseModel):
    """One grader (or the reward) against one target.

    `label` is the name to display where the suite gives one. `low` and `high` are the 95% interval of the mean,
    clustered by sample; `pass_rate` is the share of scores that pass, with its interval from `pass_low` to `pass_high`.
    Both weigh each score, so a sample with more trials counts more. `pass_at` and `pass_hat` map k to pass@k and
    pass^k, which weigh each sample: they are over the samples, counted in `pass_samples`, with as many scored trials as
    the largest k (see `passes_by_k`), and `pass_hat_intervals` has the 95% interval of pass^k. Of the errors,
    `tester_errors` were made by the tester that led the conversations: `pass_rate` is net of them, `raw_pass_rate`
    counts them as not passed and `highest_pass_rate` as passed, which are bounds for what a tester without faults would
    have found; both are None if there are none. `corrected` is the rate of passing without the errors of the judge, or
    why there is none, where the judge was calibrated. Where the conversations were drawn from more, `population` counts
    all of them: the mean, the rate of passing and their intervals are estimates for all, and counts are of those that
    were drawn. `unverified` counts the scores whose judge claims something on evidence that is missing or not in the
    conversation, and `breaches` by kind the false statements and broken rules that the judge of a goal found besides
    it. With a `severity` it is a requirement, and says what a miss does. `measured` sums up the scores that are
    measurements; `scored` counts them too, and the mean, the rates, and the intervals leave them out. Where the
    conversations were drawn, it is of those that were drawn.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    target: str
    label: str | None = None
    severity: Severity | None = None
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
    pass_hat_intervals: dict[int, tuple[float, float]] = Field(default_factory=dict[int, tuple[float, float]])
    pass_samples: dict[int, int] = Field(default_factory=dict[int, int])
    corrected: CorrectedRate | None = None
    population: int | None = None
    unverified: int = 0
    breaches: dict[BreachKind, int] = Field(default_factory=dict[BreachKind, int])
    measured: MeasurementSummary | None = None


class TagSummary(BaseModel):
    """The results of the samples with one tag, by grader."""

    model_config = ConfigDict(frozen=True)

    tag: str
    graders: list[GraderSummary]


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

    `verdict` is None if there is neither a gate nor an assertion or a rule, and so nothing can fail. `reasons` are what
    decided it, and `warnings` what was missed and only warns. It is `inconclusive` if a grader has no score because of
    errors, if nothing at all was scored, if a requirement applied to nothing, if more conversations had an error than
    the run allows (without a gate: any), or if the run was stopped early, as `stopped` says. `failed_attempts` counts
    conversations that ended with an error; `error_attempts` also counts those with a missing score because of an error;
    of these, the tester spoiled `tester_error_attempts`.
    `usage` is by role; `tags` are the tags of samples, of many those with the most samples, and `more_tags` is how
    many others there are; `variance` is of the graders for which trials or judgements
    repeat. `agents` are those of targets that are made of several, of many those that fail most, and `more_agents` is
    how many others there are; `unnamed_failures` counts what failed in their conversations without telling of whom.
    `trials` says how many were made where fewer than planned could be enough; the intervals of means then hold at any
    time, and are of these samples and not of others like them. `recording` says by target how far conversations went
    as they were recorded, where the run has a recording. `sampling` says how the conversations were drawn, where not
    all of a dataset run. `skips` says of each grader that did not apply to every conversation why. `differences` say
    how far the target with the highest mean is above each other one.
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
    warnings: list[Reason] = Field(default_factory=list[Reason])
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
    skips: list[SkipSummary] = Field(default_factory=list[SkipSummary])

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
        return self.undecided(stopped)

    def undecided(self, stopped: str) -> Summary:
        """Return the summary of a run that is not complete, as the sentence `stopped` says, and so has no verdict."""
        return self.model_copy(update={"verdict": "inconclusive", "stopped": stopped})


def summarise(
    tallies: Tallies,
    *,
    attempts: int,
    failed: int,
    rules: Rules | None = None,
    pairs: Sequence[AgreementPair] = (),
    graders: Sequence[Grader] = (),
    errors: int = 0,
    warned: Mapping[tuple[str, str], list[str]] | None = None,
) -> Summary:
    """Return the summary of a run; without `rules` nothing but errors decides.

    `errors` is the number of attempts with an error of any kind. `warned` has the samples with a missed assertion that
    only warns, as `decide` needs them.
    """
    rules = rules or Rules()
    decision = decide(tallies, rules, errors=errors, attempts=attempts, warned=warned or {})
    known = {grader.name: grader for grader in graders}
    return Summary(
        attempts=attempts,
        failed_attempts=failed,
        sampling=next((one.sampling for one in tallies.values()), None),
        error_attempts=errors,
        tester_error_attempts=spoiled_attempts(tallies),
        graders=[
            grader_summary(*key, tally, known.get(key[1]), rules.requirements.get(key[1]))
            for key, tally in tallies.items()
        ],
        differences=target_differences(tallies),
        agreement=[_agreement(tallies, pair) for pair in pairs],
        verdict=decision.verdict,
        reasons=decision.reasons,
        warnings=decision.warnings,
    )


def grader_summary(
    target: str, name: str, found: Tally, grader: Grader | None, severity: Severity | None = None
) -> GraderSummary:
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
        severity=severity,
        scored=found.scored,
        errors=found.errors,
        skipped=found.skipped,
        samples=len({*trials, *(sample for sample, _ in found.measured)}),
        mean=estimate and estimate.mean,
        low=estimate and estimate.low,
        high=estimate and estimate.high,
        pass_rate=rate and rate.mean,
        pass_low=rate and rate.low,
        pass_high=rate and rate.high,
        tester_errors=len(found.spoiled),
        population=found.sampling and found.sampling.population,
        unverified=found.unverified,
        breaches={kind: len(samples) for kind, samples in found.breaches.items()},
        measured=_measured([number for _, number in found.measured]),
        **spoiled_bounds(sum(passed), len(passed), len(found.spoiled)),
        **_passes([] if found.sampling else [(sum(trial), len(trial)) for trial in trials.values()]),
    )


def _measured(numbers: Sequence[float]) -> MeasurementSummary | None:
    if not numbers:
        return None
    return MeasurementSummary(n=len(numbers), mean=float(mean(numbers)), min=min(numbers), max=max(numbers))


def _estimate(found: Tally, values: Sequence[float]) -> Estimate | None:
    """Return the mean of values, one for each score, with the interval that it may have."""
    if found.population is not None:
        drawn = found.population.mean(values)
        return drawn and Estimate(drawn.mean, drawn.low, drawn.high, drawn.n, len(set(found.samples)))
    if found.intervals == "fixed" or not values:
        return mean_interval(values, found.samples)
    center, n = sum(values) / len(values), len(values)
    low, high = None, None
    if found.intervals == "any_time":
        low, high = at_any_time(found.scores, values, LEVEL)
        low, high = (
            min(low, center),
            max(high, center),
        )  # rounds weigh differently, so a drift could leave the mean outside
    return Estimate(center, low, high, n, len(set(found.samples)))


def _passes(counts: list[tuple[int, int]]) -> dict[str, Any]:
    found = passes_by_k(counts)
    return {
        "pass_at": {k: p.at_k for k, p in found.items()},
        "pass_hat": {k: p.hat_k for k, p in found.items()},
        "pass_hat_intervals": {
            k: (p.hat_low, p.hat_high) for k, p in found.items() if p.hat_low is not None and p.hat_high is not None
        },
        "pass_samples": {k: p.samples for k, p in found.items()},
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


EXIT_CODES: Mapping[Verdict | None, int] = {None: 0, "pass": 0, "fail": 1, "inconclusive": 3}
"""The exit code of a command for each verdict; None is that of a run that cannot fail."""


@dataclass(frozen=True, slots=True)
class RunResult(Tabular):
    """The record of a run, its set of scores, and the summary; `place` names the store with everything else.

    `stopped_by` says why it ended early, None if it ran to its end.
    """

    TABLES: ClassVar = ("samples", "scores", "turns", "labels")
    TABLES_FROM: ClassVar = "vivavoce.report.tables:result_table"

    run: Run
    grading: Grading
    summary: Summary
    place: str
    stopped_by: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 pass or no gate, 1 a gate failed or a requirement was missed, 3 inconclusive, 130 interrupted."""
        if self.stopped_by == INTERRUPTED:
            return 130
        return EXIT_CODES[self.summary.verdict]

    @property
    def finding(self) -> str:
        """The verdict and its basis, in one sentence; the code for sentences is in a higher layer."""
        return cast("str", lazy("vivavoce.report.verdict:finding")(self.summary, self.grading))

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every conversation with its grades, read from the store."""
        with closing(self._open_store()) as store:
            yield from store.outcomes(self.grading.id)

    def publish(self, to: str) -> list[str]:
        """Send the run with its scores to `langfuse`, `phoenix`, `otel`, `mlflow` or `wandb`; return what was done.

        Addresses and keys are read from the environment, as the packages of these tools do. The same run may be sent
        again; nothing is duplicated.

        Raises:
            UsageError: there is no such tool, it cannot be reached, or it refuses something.
            MissingExtra: its package is not installed.
        """
        with closing(self._open_store()) as store:
            graded = lazy("vivavoce.report.graded_run:GradedRun")(store, self.run, self.grading)
            return cast("list[str]", lazy("vivavoce.report.export:publish")(graded, to))

    def _open_store(self) -> Store:
        """Open the store; its code is loaded only when it is read."""
        return cast("Store", lazy("vivavoce.store.store:Store").open(self.place, create=False))

    def __str__(self) -> str:
        means = ", ".join(f"{g.name} {g.mean:.3f}" for g in self.summary.graders if g.mean is not None)
        verdict = self.grading.verdict or "no gate"
        held = f"{self.summary.attempts} conversation{'s' * (self.summary.attempts != 1)}"
        return f"{self.run.id}: {verdict}; {held}; {means or 'nothing scored'}"

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook; reports are in a higher layer, so their code is loaded only when needed."""
        return cast("str", lazy("vivavoce.report.html.notebook:result_html")(self))
