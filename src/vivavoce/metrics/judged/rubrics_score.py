"""`RubricsScore`: which of the levels that you describe fits the conversation?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Unpack

from vivavoce.errors import UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.judging import JudgingOptions
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.rating import RatingMetric
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.custom import ModelLike

_LEVEL = re.compile(r"score(\d+)_description")


class RubricsScore(RatingMetric):
    """Scores a conversation with the level whose description fits it.

    `rubrics`, or `rubric`, maps `score1_description` and so on to descriptions; the levels need not be 1 to 5. The
    score is one of them, and anything else an error, where Ragas takes whatever number the judge says; it passes from
    `threshold` on where one is given, on the same scale, and `value` is the score from 0 to 1. Over the pieces of a
    conversation the score is their mean. A `reference` is shown to the judge.

    Known failure: between levels whose descriptions overlap the judge chooses by taste.
    """

    template: ClassVar[str] = "judged/rubrics_score.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("levels",))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        rubrics: Mapping[str, str] | None = None,
        rubric: Mapping[str, str] | None = None,
        **options: Unpack[JudgingOptions],
    ) -> None:
        described = rubric if rubrics is None else rubrics
        if described is None or (rubrics is not None and rubric is not None):
            raise UsageError("give rubrics, or rubric, which is the same")
        self.levels = read_levels(described)
        config = MetricConfig(
            class_name=type(self).__name__,
            name="rubrics_score",
            description="Which of the described levels fits?",
            minimum=min(self.levels),
            maximum=max(self.levels),
        )
        super().__init__(config, model, **options)

    @cached_property
    def answer(self) -> Any:
        """The type of the score in an answer: one of the levels."""
        return Literal[tuple(self.levels)]

    @property
    def parameters(self) -> Mapping[str, object]:
        """The levels."""
        return {"levels": self.levels}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the levels; their descriptions are a part of the prompt, in the words of their author."""
        del metric_input
        return {"levels": {level: Wording(" ".join(text.split())) for level, text in self.levels.items()}}


def read_levels(rubrics: Mapping[str, str]) -> dict[int, str]:
    """Return descriptions by their levels, the lowest first.

    Raises:
        UsageError: there are fewer than two, a key has another form, or a description is empty.
    """
    levels: dict[int, str] = {}
    for key, description in rubrics.items():
        match = _LEVEL.fullmatch(key)
        if match is None:
            raise UsageError(f"a key of rubrics is score1_description, score2_description and so on; got '{key}'")
        if not description.strip() or int(match[1]) in levels:
            raise UsageError(f"rubrics: {key} is {'empty' if not description.strip() else 'there twice'}")
        levels[int(match[1])] = description
    if len(levels) < 2:
        raise UsageError(f"rubrics describe at least two levels; got {len(levels)}")
    return dict(sorted(levels.items()))
