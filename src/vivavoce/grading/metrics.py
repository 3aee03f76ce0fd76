"""Metrics as graders: what a metric says of a conversation, as a grade between 0 and 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import Case
from vivavoce.metrics.exact.embedded import EmbeddedMetric
from vivavoce.metrics.material import material
from vivavoce.metrics.measuring import ExactMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.records.score import PASSED, GradeResult, TurnGrade, failed, skipped

_TYPED = frozenset(("score", "score_type", "is_successful", "confidence", "reasoning", "evidence", "pieces", "goal"))
"""Details that a grade holds elsewhere, or that the sample has."""


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
            raise UsageError(f"{self.metric.name} has no highest score; say which ones pass with config: threshold")
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


def metric_grader(name: str, metric: BaseMultiTurnMetric, label: str | None = None) -> Grader:
    """Return a metric as a grader of whole conversations.

    Raises:
        UsageError: nothing says which of its scores pass.
    """
    measuring = MetricScore(metric)
    return Grader(
        name,
        last_assistant,
        measuring.score,
        "conversation",
        metric.fingerprint,
        reads_silence=True,
        label=label,
        judged=metric.judged and metric.model is not None,
        asks_each_turn=getattr(metric, "scope", "conversation") != "conversation",
        passes_from=measuring.passes_from,
        waits=metric.judged or not isinstance(metric, ExactMetric) or isinstance(metric, EmbeddedMetric),
    )


def grade_of(result: MetricResult, metric: BaseMultiTurnMetric) -> GradeResult:
    """Return a result as a grade; its details become the metadata, its pieces the grades of turns."""
    if result.error is not None:
        return failed(result.error, usage=result.usage)
    if result.state == "skipped":
        return skipped(result.reasoning or "the metric does not apply", usage=result.usage)
    own = {name: value for name, value in result.details.items() if name not in _TYPED}
    told = {"score": result.score, "passed": result.passed, "confidence": result.confidence}
    metadata = {**{name: value for name, value in told.items() if value is not None}, **own}
    if result.evidence:
        metadata["evidence"] = [one.model_dump() for one in result.evidence]
    return GradeResult(
        score=_score(result, metric),
        rationale=result.reasoning,
        metadata=metadata,
        per_turn_grades=_turns(result, metric),
        usage=result.usage,
    )


def _score(result: MetricResult, metric: BaseMultiTurnMetric) -> float:
    value = result.value if result.value is not None else _normalised(result.score, metric)
    return float(bool(result.passed)) if value is None else value


def _normalised(score: object, metric: BaseMultiTurnMetric) -> float | None:
    return metric.config.normalised(score) if isinstance(score, bool | int | float | str) else None


def _turns(result: MetricResult, metric: BaseMultiTurnMetric) -> list[TurnGrade] | None:
    """Return the pieces that end with each turn as the grades of turns; those of a split conversation are none."""
    if getattr(metric, "scope", "conversation") == "conversation":
        return None
    pieces = cast("list[Mapping[str, Any]]", result.details.get("pieces") or [])
    return [_turn(piece, metric) for piece in pieces] or None


def _turn(piece: Mapping[str, Any], metric: BaseMultiTurnMetric) -> TurnGrade:
    score, turn, reason = piece["score"], int(piece["last_turn"]), piece["reasoning"]
    if score is None:
        return TurnGrade(turn=turn, state="skipped", rationale=reason)
    value = _normalised(score, metric)
    if value is None:
        value = float(bool(metric.config.passes(score)))
    return TurnGrade(turn=turn, score=value, rationale=reason, metadata={"score": score})
