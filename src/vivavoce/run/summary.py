"""The summary of a run: what each grader says on the whole, with n and interval, and the verdict of the gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from vivavoce.grading.gates import Gate, Scores
from vivavoce.records.run import ScoreRow, Verdict
from vivavoce.records.score import reaches
from vivavoce.stats.agreement import agreement
from vivavoce.stats.intervals import mean_interval
from vivavoce.stats.passes import passes

if TYPE_CHECKING:  # what reads a summary need not load all that a suite may name
    from vivavoce.grading.grader import Grader
    from vivavoce.suites.spec import AgreementSpec

_RANK: dict[Verdict, int] = {"pass": 0, "inconclusive": 1, "fail": 2}


class GraderSummary(BaseModel):
    """One grader (or the reward) against one target.

    `label` is the name to display where the suite gives one. `low` and `high` are the 95 % interval of the mean,
    clustered by sample; `pass_rate` is the share of scores that pass, with its
    interval from `pass_low` to `pass_high`; `pass_at` and `pass_hat` map k to pass@k and pass^k
    over the samples, counted in `pass_samples`, that have so many scored trials. Of the errors, `tester_errors` were
    made by the tester that led the conversations: `pass_rate` is net of them, and `raw_pass_rate` counts them as not
    passed; it is None where there are none.
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
    pass_at: dict[int, float] = Field(default_factory=dict[int, float])
    pass_hat: dict[int, float] = Field(default_factory=dict[int, float])
    pass_samples: dict[int, int] = Field(default_factory=dict[int, int])


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
    """A run on the whole.

    `verdict` is None where the suite has no gate and so nothing can fail. It is `inconclusive`, with or without a gate,
    where a grader has no score because of errors, where nothing at all was scored, and where the run was stopped early,
    of which `stopped` says why and where.
    """

    model_config = ConfigDict(frozen=True)

    attempts: int
    failed_attempts: int
    graders: list[GraderSummary]
    agreement: list[AgreementSummary] = Field(default_factory=lambda: list[AgreementSummary]())
    verdict: Verdict | None = None
    reasons: list[str] = Field(default_factory=list)
    stopped: str | None = None

    def grader(self, name: str, target: str | None = None) -> GraderSummary:
        """Return the summary of a grader, of the first target unless one is named."""
        return next(g for g in self.graders if g.name == name and target in (None, g.target))

    @property
    def explained(self) -> list[str]:
        """Why the verdict is what it is, a line for each reason; after an early stop the reasons hold only so far."""
        return self.reasons if self.stopped is None else [self.stopped, *(f"so far: {one}" for one in self.reasons)]

    def stopped_by(self, why: str, planned: int | None = None) -> Summary:
        """Return the summary of a run that ended early, which has decided nothing.

        `why` is one word, such as `interrupted`, or a sentence; `planned` is how many conversations it was to have.
        """
        of = "" if planned is None else f" of {planned:,}"
        after = f"after {self.attempts:,}{of} conversation{'s' * ((planned or self.attempts) != 1)}"
        stopped = f"{why} {after}" if why.isalpha() else f"stopped {after}: {why}"
        return self.model_copy(update={"verdict": "inconclusive", "stopped": stopped})


@dataclass(slots=True)
class Tally:
    """The scores of one grader against one target, as they come in."""

    values: list[float] = field(default_factory=list[float])
    samples: list[str] = field(default_factory=list[str])
    keys: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    passed: list[bool] = field(default_factory=list[bool])
    errors: int = 0
    tester_errors: int = 0
    skipped: int = 0

    def add(self, row: ScoreRow) -> None:
        """Count one score."""
        if row.state == "scored" and row.value is not None:
            self.values.append(row.value)
            self.samples.append(row.key.sample_id)
            self.keys.append((row.key.sample_id, row.key.trial))
            self.passed.append(row.passed is True)
        elif row.state == "error":
            self.errors += 1
            self.tester_errors += row.tester_error
        else:
            self.skipped += 1

    @property
    def scores(self) -> Scores:
        """The scores as a gate reads them."""
        return Scores(self.values, self.passed, self.samples, self.errors, self.skipped)


Tallies = dict[tuple[str, str], Tally]
"""By target and by grader."""


def tally(rows: Iterable[ScoreRow]) -> Tallies:
    """Count the scores of a run, one stream of rows, target by target and grader by grader."""
    tallies: Tallies = defaultdict(Tally)
    for row in rows:
        tallies[row.key.target, row.name].add(row)
    return dict(tallies)


def summarise(
    tallies: Tallies,
    *,
    attempts: int,
    failed: int,
    gate: Gate | None,
    pairs: Sequence[AgreementSpec] = (),
    graders: Sequence[Grader] = (),
) -> Summary:
    """Return the summary of a run; a gate passes only where it passes for every target."""
    verdict, reasons = _decide(tallies, gate)
    known = {grader.name: grader for grader in graders}
    return Summary(
        attempts=attempts,
        failed_attempts=failed,
        graders=[_grader(target, name, found, known.get(name)) for (target, name), found in tallies.items()],
        agreement=[_agreement(tallies, pair) for pair in pairs],
        verdict=verdict,
        reasons=reasons,
    )


def _grader(target: str, name: str, found: Tally, grader: Grader | None) -> GraderSummary:
    passed = found.passed
    trials: dict[str, list[bool]] = defaultdict(list)
    for sample, one in zip(found.samples, passed, strict=True):
        trials[sample].append(one)
    rate = mean_interval([float(one) for one in passed], found.samples)
    estimate = mean_interval(found.values, found.samples)
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
        tester_errors=found.tester_errors,
        raw_pass_rate=sum(passed) / (len(passed) + found.tester_errors) if found.tester_errors else None,
        **_passes([(sum(trial), len(trial)) for trial in trials.values()]),
    )


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


def _agreement(tallies: Tallies, pair: AgreementSpec) -> AgreementSummary:
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


def _decide(tallies: Tallies, gate: Gate | None) -> tuple[Verdict | None, list[str]]:
    silent = _silent(tallies)
    if not any(found.values for found in tallies.values()):
        return "inconclusive", [*silent.values()] or ["inconclusive · nothing was scored"]
    verdict, reasons = _by_gate(tallies, gate)
    told = [start for start in silent if any(reason.startswith(start) for reason in reasons)]
    reasons += [reason for start, reason in silent.items() if start not in told]
    return ("inconclusive" if silent else verdict), reasons


def _silent(tallies: Tallies) -> dict[str, str]:
    """Return a reason for each grader that has no score at all because of errors, by how it begins."""
    several = len({target for target, _ in tallies}) > 1
    found: dict[str, str] = {}
    for (target, name), counted in tallies.items():
        if counted.errors and not counted.values:
            start = f"inconclusive · {f'{target}: ' if several else ''}{name}: nothing was scored"
            found[start] = f"{start} ({counted.errors} error{'s' * (counted.errors != 1)})"
    return found


def _by_gate(tallies: Tallies, gate: Gate | None) -> tuple[Verdict | None, list[str]]:
    if gate is None:
        return None, []
    targets = list(dict.fromkeys(target for target, _ in tallies))
    worst: Verdict = "pass"
    reasons: list[str] = []
    for target in targets:
        by_name = {name: found.scores for (t, name), found in tallies.items() if t == target}
        result = gate.decide(_Defaulting(by_name))
        worst = max(worst, result.verdict, key=_RANK.__getitem__)
        label = f"{target}: " if len(targets) > 1 else ""
        reasons += [f"{verdict} · {label}{why}" for verdict, why in result.reasons]
    return worst, reasons


class _Defaulting(dict[str, Scores]):
    """Scores by grader; a grader that gave none has none."""

    def __missing__(self, key: str) -> Scores:
        return Scores([], [], [])
