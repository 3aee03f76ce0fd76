"""`RubricsScore`: which of the levels that you describe fits the conversation?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Unpack, cast

from vivavoce.errors import GraderFault, UsageError
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.panel import copy_of
from vivavoce.metrics.prompts import Wording
from vivavoce.metrics.question import Plan
from vivavoce.metrics.rating import RatingMetric, RatingOptions
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.validation import copy_with

_LEVEL = re.compile(r"score(\d+)_description")


class RubricsScore(RatingMetric):
    """Scores a conversation with the level whose description fits it.

    `rubrics`, or `rubric`, maps `score1_description` and so on to descriptions; the levels need not be 1 to 5. By
    default those of the conversation's row apply, under the same names. The score is one of the levels, and anything
    else is an error, while Ragas takes any number the judge says; it passes from `threshold` up, if given, on the
    same scale, and `value` is the score from 0 to 1. For a conversation in pieces the score is their mean. A
    `reference` is shown to the judge.

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
        **options: Unpack[RatingOptions],
    ) -> None:
        if rubrics is not None and rubric is not None:
            raise UsageError("rubrics and rubric are the same; give one of them")
        described = rubric if rubrics is None else rubrics
        self.levels = None if described is None else read_levels(described)
        config = MetricConfig(
            class_name=type(self).__name__, name="rubrics_score", description="Which of the described levels fits?"
        )
        super().__init__(_ranging(config, self.levels), model, **options)

    def unmet(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Return that no levels are given."""
        described = self.levels or _of_row(metric_input)
        return None if described else "needs rubrics: give rubrics=, or a mapping of them in the row"

    def steps_for(self, reading: Reading) -> Plan[MetricResult]:
        """Measure a conversation by the levels of its row, unless the metric has levels of its own.

        Raises:
            GraderFault: the rubrics of the row are not levels.
        """
        if self.levels or self.inapplicable(reading.metric_input):
            return (yield from super().steps_for(reading))
        by_row = copy_of(self)
        by_row._fingerprints = {}
        try:
            by_row.levels = read_levels(_of_row(reading.metric_input))
        except UsageError as error:
            raise GraderFault(f"this row cannot be judged by its rubrics: {error}", kind="options") from error
        by_row.config = _ranging(self.config, by_row.levels)
        return copy_with((yield from by_row.steps_for(reading)), {"fingerprint": self.fingerprint})

    @property
    def needs_threshold(self) -> bool:
        """Always false: all levels have a highest one."""
        return False

    @cached_property
    def answer(self) -> Any:
        """The type of the score in an answer: one of the levels."""
        return Literal[tuple(self.levels or ())]

    @property
    def parameters(self) -> Mapping[str, object]:
        """The levels."""
        return {"levels": self.levels}

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the levels; their descriptions are a part of the prompt, in the words of their author."""
        del metric_input
        levels = self.levels or {}
        return {"levels": {level: Wording(" ".join(text.split())) for level, text in levels.items()}}


def _of_row(metric_input: MultiTurnEvaluationInput) -> Mapping[str, str]:
    """Return the rubrics of the row that a conversation came of, empty where there are none."""
    row = {} if metric_input.sample is None else metric_input.sample.metadata
    rubrics: object = row.get("rubrics")
    return cast("Mapping[str, str]", rubrics) if isinstance(rubrics, Mapping) else {}


def _ranging(config: MetricConfig, levels: Mapping[int, str] | None) -> MetricConfig:
    """Return a configuration with the range of levels; it has no end where they are not known."""
    lowest, highest = (float(min(levels)), float(max(levels))) if levels else (0.0, None)
    return config.model_copy(update={"minimum": lowest, "maximum": highest})


def read_levels(rubrics: Mapping[str, str]) -> dict[int, str]:
    """Return descriptions by their levels, the lowest first.

    Raises:
        UsageError: there are fewer than two, a key has another form, or a description is empty.
    """
    levels: dict[int, str] = {}
    for key, description in rubrics.items():
        match = _LEVEL.fullmatch(key)
        if match is None:
            raise UsageError(f"rubrics needs keys score1_description, score2_description and so on; got '{key}'")
        if not isinstance(description, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # a row may hold anything
            raise UsageError(f"rubrics: {key} is a {type(description).__name__}, not a text")
        if not description.strip() or int(match[1]) in levels:
            raise UsageError(f"rubrics: {key} is {'empty' if not description.strip() else 'duplicated'}")
        levels[int(match[1])] = description
    if len(levels) < 2:
        raise UsageError(f"rubrics need at least two levels; got {len(levels)}")
    return dict(sorted(levels.items()))
