"""`SimpleCriteria`: how well does the conversation meet a criterion of yours, as a whole number?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Unpack

from pydantic import Field

from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.rating import RatingMetric, RatingOptions
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike


class SimpleCriteria(RatingMetric):
    """Scores a conversation by `criteria`, a text, with a whole number from `minimum`, 0, to `maximum`, 5.

    It passes from `threshold` up, if given, in the same range; `value` is the score from 0 to 1. Ragas' metric
    of this name takes whatever number the judge says; here one outside the range is an error. For a conversation in
    pieces the score is their mean.

    Known failure: the number is the judge's own, and the scales of two models differ.
    """

    template: ClassVar[str] = "judged/simple_criteria.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("criteria", "minimum", "maximum"))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        criteria: str,
        minimum: int = 0,
        maximum: int = 5,
        **options: Unpack[RatingOptions],
    ) -> None:
        if not criteria.strip():
            raise UsageError("criteria is empty; write what to score")
        if minimum >= maximum:
            raise UsageError(f"minimum must be below maximum; got {minimum} and {maximum}")
        self.criteria = criteria.strip()
        self.minimum, self.maximum = minimum, maximum
        config = MetricConfig(
            class_name=type(self).__name__,
            name="simple_criteria",
            description=self.criteria,
            minimum=minimum,
            maximum=maximum,
        )
        super().__init__(config, model, **options)

    @cached_property
    def answer(self) -> Any:
        """The type of the score in an answer: a whole number in the range."""
        return Annotated[int, Field(ge=self.minimum, le=self.maximum)]

    @property
    def parameters(self) -> Mapping[str, object]:
        """The criterion."""
        return {"criteria": self.criteria}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the criterion, which its author wrote as a part of the prompt, and the range."""
        del metric_input
        return {"criteria": Wording(self.criteria), "minimum": self.minimum, "maximum": self.maximum}
