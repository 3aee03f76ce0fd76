"""`ExpectMetric`: the assertions of a row as a metric, which asks a judge where the row wants that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vivavoce.errors import UsageError
from vivavoce.grading.asked import Asked, Judge, procedures
from vivavoce.grading.expect import expect, judged_by
from vivavoce.grading.expected import read_expect
from vivavoce.grading.function_grader import FunctionGrader
from vivavoce.grading.grader import Grader, Scope
from vivavoce.grading.graders import Grade
from vivavoce.grading.standalone import graded
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike, as_model
from vivavoce.models.default_judge import DefaultJudge
from vivavoce.models.model import Model
from vivavoce.samples.sample import Sample


class ExpectMetric(FunctionGrader):
    """Score the share of the row's own assertions (`expect`) that hold, by weight; it passes when all do.

    Assertions that a judge decides ask `model` with these `settings`, or else the model that VIVAVOCE_JUDGE names.
    """

    function: ClassVar[Grade] = staticmethod(expect)
    registered: ClassVar[str] = "expect"
    may_ask = True
    takes_settings = True

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        name: str = "",
        threshold: float | None = None,
        scope: Scope | None = None,
        extractor: str = "last_assistant",
        extractor_config: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name=name, threshold=threshold, scope=scope, extractor=extractor, extractor_config=extractor_config
        )
        self.model = None if model is None else as_model(model)
        self.settings = settings
        self._default = DefaultJudge()

    def asking(self, asked: Mapping[str, Asked]) -> Grader:
        """Return its grader for rows that ask this of metrics."""
        return judged_by(self.grader, asked, self._judge(self.model))

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        """Check the assertions of the row that a conversation came of."""
        asked = asked_by(evaluation_input.sample)
        model = self.model
        if model is None and any(one.asks for one in asked.values()):
            model = self._default.model
        return await graded(judged_by(self.grader, asked, self._judge(model)), evaluation_input, self.name)

    def _judge(self, model: Model | None) -> Judge | None:
        return None if model is None else Judge(model, self.settings)

    async def close(self) -> None:
        """Close the connections of the judge; a later question opens new ones."""
        await super().close()
        await self._default.close()


def asked_by(sample: Sample | None) -> dict[str, Asked]:
    """Return what a row asks of metrics, nothing where its assertions cannot be read."""
    if sample is None or sample.expect is None:
        return {}
    try:
        return procedures(part for one in read_expect(sample.expect) for part in one.asked)
    except UsageError:  # said where they are checked
        return {}
