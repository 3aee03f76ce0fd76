"""`TestResult`: the full outcome of a test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

from pydantic import Field, computed_field
from pydantic_core import PydanticSerializationError

from vivavoce.messages import ConversationHistory
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.context import TestContext, TurnMetrics
from vivavoce.penelope.judging import CONTRACT, GOAL
from vivavoce.penelope.turn import Turn
from vivavoce.penelope.view import html, line, text
from vivavoce.records.score import Usage
from vivavoce.records.trajectory import Criterion as Criterion
from vivavoce.records.trajectory import Test, TestOutcome, Trajectory
from vivavoce.samples.table import Tabular


class TestResult(Tabular, TestOutcome[TestContext, Turn, MetricResult, TurnMetrics]):
    """The outcome of a test; its fields are those of `records.trajectory.TestOutcome`.

    `state` is the row's state as the target left it; a record of the test has it in its trajectory.
    """

    TABLES: ClassVar = ("turns", "metrics")
    TABLES_FROM: ClassVar = "vivavoce.report.metric_tables:tested_table"

    context: TestContext = Field(default_factory=lambda: TestContext(goal=""))
    discarded: list[TestResult] = Field(default_factory=lambda: list[TestResult]())
    state: dict[str, Any] | None = Field(default=None, exclude=True)

    @computed_field
    @property
    def outcome(self) -> str:
        """How the test ended and whether the target passed, in words."""
        return super().outcome

    @property
    def turns_used(self) -> int:
        """How many exchanges the test had, including those that failed."""
        return len(self.history)

    @property
    def duration_seconds(self) -> float | None:
        """How long the test took, None where it was not timed."""
        if self.start_time is None or self.end_time is None:
            return None
        return (self.end_time - self.start_time).total_seconds()

    @property
    def conversation(self) -> ConversationHistory:
        """The messages between tester and target, without the steps of the tester."""
        exchanged = (message for turn in self.history for message in turn.exchange.messages)
        return ConversationHistory.model_construct(messages=[*self.opening, *exchanged], conversation_id=None)

    @property
    def goal_reasoning(self) -> str:
        """Why the goal is judged as it is."""
        result = self.evaluation.get(GOAL)
        return (result.reasoning if result else None) or ""

    @property
    def cost(self) -> float | None:
        """The cost of all calls in US dollars, None where a price is unknown."""
        return sum(self.usage.values(), Usage()).cost

    def model_dump_json(self, **how: Any) -> str:
        r"""Return the test as JSON; other values become their `str`, and half a surrogate pair becomes U+FFFD."""
        how = {"fallback": str, **how}
        try:
            return super().model_dump_json(**how)
        except PydanticSerializationError:
            indent = how.pop("indent", None)
            text = json.dumps(self.model_dump(mode="json", **how), ensure_ascii=False, indent=indent)
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def get_metric_result(self, metric_name: str) -> MetricResult | None:
        """Return the result of a metric, None where there is none."""
        return self.evaluation.get(metric_name)

    def get_quality_score(self, default: float = 1.0) -> float | None:
        """Return the mean of the quality metrics from 0, worst, to 1, best; None where none of them was scored.

        Without any quality metric it is `default`. The goal and what the target must do are not quality metrics, and
        errors are not scores.
        """
        quality = list(self._quality())
        values = [result.value for result in quality if result.state == "scored" and result.value is not None]
        if not quality:
            return default
        return sum(values) / len(values) if values else None

    def get_mean_confidence(self, default: float = 1.0) -> float:
        """Return how sure the judges of the quality metrics are on average, 0.5 for one that does not say."""
        sure = [
            0.5 if result.confidence is None else result.confidence
            for result in self._quality()
            if result.state == "scored"
        ]
        return sum(sure) / len(sure) if sure else default

    def all_metrics_passed(self) -> bool:
        """Say whether the goal and every other metric passed; a metric without a score has not."""
        return bool(self.evaluation) and all(result.passed is True for result in self.evaluation.values())

    def _quality(self) -> Iterable[MetricResult]:
        return (result for name, result in self.evaluation.items() if name not in (GOAL, CONTRACT))

    def __repr__(self) -> str:
        return f"<TestResult {line(self)}>"

    def __str__(self) -> str:
        return self.pretty_repr()

    def pretty_repr(self) -> str:
        """Return the test as readable lines: the verdict, the conversation, the metrics."""
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def dump_test(result: TestResult) -> Test:
    """Return a test without the exchanges and the opening, which its trajectory holds."""
    without = {"history": {"__all__": {"exchange"}}, "opening": True}
    return Test.model_validate(result.model_dump(mode="json", exclude=without, exclude_none=True))


def read_test(test: Test, trajectory: Trajectory) -> TestResult:
    """Return the test of a trajectory, from what `dump_test` left of it."""
    plain = test.model_dump(mode="json", exclude_none=True)
    turns = zip(plain["history"], trajectory.turns, strict=True)
    history = [{**turn, "exchange": exchange} for turn, exchange in turns]
    trajectory_fields = {"history": history, "opening": trajectory.opening, "state": trajectory.state}
    return TestResult.model_validate({**plain, **trajectory_fields})
