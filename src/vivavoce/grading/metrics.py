"""Metrics as graders: what a metric says of a conversation, as a grade between 0 and 1."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import Case
from vivavoce.metrics.exact.embedded import EmbeddedMetric
from vivavoce.metrics.judges import asking
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.material import material
from vivavoce.metrics.measuring import ExactMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.records.failure import Failure, shorten
from vivavoce.records.score import PASSED, GradeResult, TurnGrade, failed, skipped

_TYPED = frozenset(("score", "score_type", "is_successful", "confidence", "reasoning", "evidence", "goal"))
"""Details that a grade holds elsewhere, or that the sample has."""

_ROUNDING = 1e-9
"""A mean may lie so far outside the range of what it is the mean of."""


@dataclass(frozen=True, slots=True)
class MetricScore:
    """The score of a metric for a case: its value from 0 to 1, or of one without a highest value, whether it passes.

    Raises:
        UsageError: the scores of the metric have no highest value, and nothing says which ones pass.
    """

    metric: BaseMultiTurnMetric

    def __post_init__(self) -> None:
        config = self.metric.config
        if config.score_type == "numeric" and config.maximum is None and config.threshold is None:
            raise UsageError(
                f"{self.metric.name} has no highest score and needs a threshold, which says which ones pass"
            )
        best = config.categories[len(config.categories) - len(config.passing_categories) :]
        if set(best) != set(config.passing_categories):
            raise UsageError(f"{self.metric.name}: the categories that pass must be the best ones, {list(best)}")

    @property
    def passes_from(self) -> float:
        """The grade from which a conversation passes."""
        config = self.metric.config
        if config.passing_categories:
            return min(config.normalised(name) or 0.0 for name in config.passing_categories)
        if config.threshold is None or config.maximum is None:
            return PASSED
        return config.normalised(config.threshold) or 0.0

    async def score(self, case: Case) -> GradeResult:
        """Measure the conversation of a case.

        Raises:
            BudgetExhausted: the run may make no more calls.
        """
        messages = case.view.messages
        result = await self.metric.measured(material(case.sample, messages, case.view.seconds))
        return grade_of(result, self.metric)


def metric_grader(name: str, metric: BaseMultiTurnMetric, label: str | None = None, written_in: str = "") -> Grader:
    """Return a metric as a grader of whole conversations; `written_in` is all that its file says, if it has one.

    Raises:
        UsageError: nothing says which of its scores pass.
    """
    measuring = MetricScore(metric)
    asked = [one for one in asking(metric) if one.model is not None]
    each_turn = sum(_calls(one) for one in asked if not _is_whole(one))
    return Grader(
        name,
        last_assistant,
        measuring.score,
        "conversation",
        _fingerprint(metric, written_in),
        reads_silence=True,
        label=label,
        judged=bool(asked),
        once=sum(_calls(one) for one in asked if _is_whole(one)),
        each_turn=each_turn,
        passes_from=measuring.passes_from,
        waits=metric.judged or not isinstance(metric, ExactMetric) or isinstance(metric, EmbeddedMetric),
    )


def grade_of(result: MetricResult, metric: BaseMultiTurnMetric) -> GradeResult:
    """Return a result as a grade; its details become the metadata, its pieces the grades of turns."""
    if result.state == "error":
        said = result.reasoning or "the metric could not be measured, and says nothing of why"
        unsaid = Failure(blame="grader", kind="crash", message=said)
        return failed(result.error or unsaid, usage=result.usage)
    if result.state == "skipped":
        return skipped(result.reasoning or "the metric does not apply", usage=result.usage)
    turns = _turns(result, metric)
    told_apart = _TYPED if turns is None else _TYPED | {"pieces"}
    own = {name: value for name, value in result.details.items() if name not in told_apart}
    told = {"score": result.score, "passed": result.passed, "confidence": result.confidence}
    metadata = {**{name: value for name, value in told.items() if value is not None}, **own}
    if result.evidence:
        metadata["evidence"] = [one.model_dump() for one in result.evidence]
    return GradeResult(
        score=_score(result, metric),
        rationale=result.reasoning,
        metadata=metadata,
        per_turn_grades=turns,
        usage=result.usage,
    )


def _score(result: MetricResult, metric: BaseMultiTurnMetric) -> float:
    return _graded(result.score, metric, result.value, result.passed)


def _graded(score: Any, metric: BaseMultiTurnMetric, value: float | None = None, passed: bool | None = None) -> float:
    """Return a score as a grade: its value, or where it has none, whether it passes.

    Raises:
        GraderFault: it has neither, or lies outside the range that the metric states.
    """
    value = metric.config.normalised(score) if value is None else value
    if value is None:
        known = not isinstance(score, str) or score in metric.config.categories
        passed = metric.config.passes(score) if passed is None and known else passed
        value = None if passed is None else float(passed)
    if value is None or not -_ROUNDING <= value <= 1 + _ROUNDING:
        said = shorten(repr(score), 80)
        raise GraderFault(f"{metric.name} gave {said}, which is no score of the kind that it states", kind="format")
    return min(max(value, 0.0), 1.0)


def _turns(result: MetricResult, metric: BaseMultiTurnMetric) -> list[TurnGrade] | None:
    """Return the pieces that end with each turn as the grades of turns; those of a split conversation are none."""
    if _is_whole(metric):
        return None
    pieces = cast("list[Mapping[str, Any]]", result.details.get("pieces") or [])
    return [_turn(piece, metric) for piece in pieces] or None


def _turn(piece: Mapping[str, Any], metric: BaseMultiTurnMetric) -> TurnGrade:
    score, turn, reason = piece["score"], int(piece["last_turn"]), piece["reasoning"]
    if score is None:
        return TurnGrade(turn=turn, state="skipped", rationale=reason)
    return TurnGrade(turn=turn, score=_graded(score, metric), rationale=reason, metadata={"score": score})


def _calls(metric: BaseMultiTurnMetric) -> int:
    return metric.calls_per_question if isinstance(metric, JudgedMetric) else 1


def _is_whole(metric: BaseMultiTurnMetric) -> bool:
    return getattr(metric, "scope", "conversation") == "conversation"


def _fingerprint(metric: BaseMultiTurnMetric, written_in: str) -> str:
    if not written_in:
        return metric.fingerprint
    spelled = f"{metric.fingerprint}\0{written_in}"
    return hashlib.blake2b(spelled.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
