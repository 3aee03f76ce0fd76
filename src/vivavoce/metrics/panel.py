"""`Panel`: one judged metric, asked several times or under several models, and how far the answers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from typing_extensions import TypeIs

from vivavoce.errors import Fault, UsageError
from vivavoce.metrics.composition import Composition, plain
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import Named, choose, spent
from vivavoce.metrics.judges import copy_of
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.reading import Reading
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.steps import Plan
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.model import Model, identity_of


@dataclass(frozen=True, slots=True)
class Majority:
    """The outcome of votes: `share` of them agree with `score`; `tied` are the scores with equal votes, worst first."""

    score: bool | float | str
    share: float | None
    tied: Sequence[bool | float | str] = ()


class Panel(Composition):
    """Asks a judged metric for several votes: `votes` of each of `models`, or of the metric's own model.

    The score is the category with the most votes, of a tie the worse one, or the median of numbers. `agreement` in the
    details is the share of the scored votes with the same category or, for numbers, the same verdict on
    passing. A vote that is an error is shown and does not count; where more than half are, so is the whole.

    Votes of one model differ only if it is asked with a `temperature` above 0: `settings={"temperature": 0.7}`. Each is
    cast by a copy of the metric with the next `trial`.
    """

    def __init__(
        self,
        metric: Named,
        *,
        votes: int = 1,
        models: Sequence[ModelLike] = (),
        name: str | None = None,
        model: ModelLike | None = None,
    ) -> None:
        (voter,) = choose([metric], model)
        if not isinstance(voter, JudgedMetric):
            raise UsageError(f"a panel votes by a metric that asks a model; {voter.name} is a {type(voter).__name__}")
        judges = [as_model(judge_model) for judge_model in models] or [voter.model]
        _check(voter.name, votes, judges)
        seats = [seat_of(voter, judge, trial) for judge in judges for trial in range(votes)]
        super().__init__(voter.config.model_copy(update={"name": name or voter.name}), seats)

    @property
    def seats(self) -> Sequence[JudgedMetric]:
        """The copies of the metric that vote."""
        return cast("Sequence[JudgedMetric]", self.parts)

    @property
    def parameters(self) -> Mapping[str, object]:
        """Which trial each vote is."""
        return {"trials": [seat.trial for seat in self.seats]}

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Ask for all votes at once, and count them."""
        results = yield from self.together(reading)
        valid = [result for result in results if result.state == "scored"]
        broken = [result for result in results if result.state == "error"]
        if len(broken) > len(valid):
            return self._broken(results, broken)
        return self._counted(reading.metric_input, results, valid) if valid else self.unscored(results, ())

    def listed(self, results: Sequence[MetricResult]) -> dict[str, Any]:
        """Return every vote."""
        votes = zip(self.seats, results, strict=True)
        return {
            "votes": [plain(result, model=seat.judge and seat.judge.name, trial=seat.trial) for seat, result in votes]
        }

    def _counted(
        self, metric_input: MultiTurnEvaluationInput, results: Sequence[MetricResult], valid: Sequence[MetricResult]
    ) -> MetricResult:
        scores = [result.score for result in valid if result.score is not None]
        majority = majority_of(scores, self.config)
        same = [result for result in valid if _agrees(result, majority, self.config)]
        numbers = [score for score in scores if _is_number(score)]
        more: dict[str, Any] = {
            "agreement": majority.share,
            "counts": dict(Counter(str(score) for score in scores)),
            "tie": list(majority.tied),
            "spread": max(numbers) - min(numbers) if numbers else None,
        }
        return self.scored(
            metric_input, majority.score, _summary(majority, same, valid, results), results, same, **more
        )

    def _broken(self, results: Sequence[MetricResult], broken: Sequence[MetricResult]) -> MetricResult:
        first = broken[0].error
        message = (
            f"{len(broken)} of {len(results)} votes failed, the first with: {first.message if first else 'no reason'}"
        )
        fault = Fault(message, kind=first.kind if first else "crash", evidence=first.evidence if first else None)
        fault.blame = "judge"
        return self.failed(fault, usage=spent(results), fingerprint=self.fingerprint, extra=self.listed(results))


def majority_of(scores: Sequence[bool | float | str], config: MetricConfig) -> Majority:
    """Return the outcome of votes: the median of numbers, else the score with the most votes; of a tie the worst."""
    numbers = [score for score in scores if _is_number(score)]
    if len(numbers) == len(scores):
        middle = median(numbers)
        verdict = config.passes(middle)
        same = [score for score in numbers if config.passes(score) == verdict]
        return Majority(middle, None if verdict is None else len(same) / len(numbers))
    counts = Counter(scores)
    most = max(counts.values())
    tied = sorted((score for score, n in counts.items() if n == most), key=lambda score: _rank(score, config))
    return Majority(tied[0], most / len(scores), tied if len(tied) > 1 else ())


def _is_number(score: object) -> TypeIs[float]:
    return isinstance(score, int | float) and not isinstance(score, bool)


def _rank(score: bool | float | str, config: MetricConfig) -> tuple[bool, float, str]:
    return *config.goodness(score), str(score)


def _agrees(result: MetricResult, majority: Majority, config: MetricConfig) -> bool:
    if _is_number(majority.score):
        return result.score is not None and config.passes(result.score) == config.passes(majority.score)
    return result.score == majority.score


def _summary(
    majority: Majority, same: Sequence[MetricResult], valid: Sequence[MetricResult], results: Sequence[MetricResult]
) -> str:
    kind = "median" if _is_number(majority.score) else f"{len(same)} votes"
    failed = f", {len(results) - len(valid)} without a score" if len(valid) < len(results) else ""
    tie = f"; a tie of {' and '.join(map(str, majority.tied))} counts as the worst of them" if majority.tied else ""
    reason = f": {same[0].reasoning}" if same else ""
    return f"{majority.score} by {kind} of {len(valid)}{failed}{tie}{reason}"


def seat_of(metric: JudgedMetric, model: Model | None, trial: int) -> JudgedMetric:
    """Return a copy of a metric with another model and trial; it shares no mutable state and no cached values."""
    seat = copy_of(metric)
    for name, value in list(vars(seat).items()):
        if isinstance(value, list | dict | set):
            setattr(seat, name, copy(value))  # pyright: ignore[reportUnknownArgumentType]
    seat.model, seat.trial = model, trial
    return seat


def _check(name: str, votes: int, judges: Sequence[Model | None]) -> None:
    if votes < 1 or votes * len(judges) < 2:
        raise UsageError(f"a panel has at least 2 votes; {name} would be asked {max(votes, 0) * len(judges)} times")
    for judge, times in Counter(identity_of(judge) for judge in judges if judge).items():
        if times > 1:
            raise UsageError(f"{judge} sits on the panel {times} times; ask it more often with votes=")
