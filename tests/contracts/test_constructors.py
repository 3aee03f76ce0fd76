"""What users write by hand refuses a keyword that it does not have, and names it: a typo never passes in silence."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce import GradeResult, Sample, Score
from vivavoce.grading.rewards import RewardOutput
from vivavoce.metrics import MetricConfig, MetricResult
from vivavoce.metrics.question import Verdict
from vivavoce.penelope.tools.tool import ToolResult
from vivavoce.records.score import Evidence, Failure, Finding, Usage
from vivavoce.run.options import RunOptions

MADE: list[tuple[type, dict[str, Any]]] = [
    (Score, {"value": 1.0}),
    (Finding, {"kind": "claim", "what": "x", "verdict": "met", "state": "pass"}),
    (Evidence, {"text": "x"}),
    (Failure, {"blame": "grader", "kind": "crash", "message": "x"}),
    (Usage, {"input_tokens": 1}),
    (GradeResult, {"score": 1.0}),
    (RewardOutput, {"score": 1.0}),
    (MetricResult, {"score": 1.0}),
    (MetricConfig, {"name": "x"}),
    (Verdict, {"score": 1.0, "reasoning": "x"}),
    (ToolResult, {"success": True}),
    (Sample, {"id": "a", "input": "x"}),
    (RunOptions, {"trials": 1}),
]


@pytest.mark.parametrize(("kind", "fields"), MADE, ids=lambda one: one.__name__ if isinstance(one, type) else "")
def test_a_typo_is_an_error_that_names_it(kind: type, fields: dict[str, Any]) -> None:
    kind(**fields)
    with pytest.raises((ValueError, TypeError), match="thresold"):
        kind(**fields, thresold=0.7)
