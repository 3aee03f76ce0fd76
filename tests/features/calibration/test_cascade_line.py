"""The line of a suite that makes a cascade of two of its graders."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.features.calibration.cascade import cascade_line
from vivavoce.features.calibration.thresholds import Thresholds
from vivavoce.records.score import Score

RUBRIC = {"kind": "model_judge", "prompt": "Good?", "model": "openai:large"}
METRIC = {"kind": "metric", "metric": "safety", "model": "openai:large"}
BOTH = Thresholds(0.2, 0.9)


def line(
    first: dict[str, Any] | None, then: dict[str, Any], thresholds: Thresholds = BOTH, judge: str = ""
) -> str | None:
    score = Score(value=1, settings={"model": judge} if judge else {})
    return cascade_line({"graders": {"first": first, "then": then}}, "first", "then", [score], thresholds)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (
            {**RUBRIC, "model": "openai:small", "threshold": 0.5, "config": {}, "display_name": "Quick"},
            RUBRIC,
            'cascade: {model: "openai:small", fails_below: 0.2, passes_from: 0.9}',
        ),
        (
            {"kind": "metric", "metric": "toxicity", "model": "openai:small", "config": {"tokens": 900}},
            METRIC,
            'cascade: {metric: "toxicity", config: {"tokens": 900}, model: "openai:small", fails_below: 0.2, '
            "passes_from: 0.9}",
        ),
        (
            {"kind": "function", "function": "contains"},
            METRIC,
            'cascade: {metric: "contains", fails_below: 0.2, passes_from: 0.9}',
        ),
        ({**RUBRIC, "prompt": "Quite good?"}, RUBRIC, None),
        ({**METRIC, "metric": "toxicity", "extractor": "after_marker"}, METRIC, None),
        ({**METRIC, "confirm": {"model": "openai:third"}}, METRIC, None),
        ({**METRIC, "model": "openai:small"}, {**METRIC, "cascade": {"model": "openai:tiny"}}, None),
        (None, METRIC, None),
    ],
)
def test_it_is_another_model_or_another_metric(
    first: dict[str, Any] | None, then: dict[str, Any], expected: str | None
) -> None:
    assert line(first, then) == expected


def test_a_judge_that_the_suite_does_not_name_is_that_of_the_scores() -> None:
    bare = {"kind": "metric", "metric": "safety"}
    assert (
        line(bare, METRIC, judge="openai:small")
        == 'cascade: {model: "openai:small", fails_below: 0.2, passes_from: 0.9}'
    )


def test_a_threshold_that_is_not_there_is_not_written() -> None:
    first = {**METRIC, "model": "openai:small"}
    assert line(first, METRIC, Thresholds(None, 0.9)) == 'cascade: {model: "openai:small", passes_from: 0.9}'
    assert line(first, METRIC, Thresholds(0.2, None)) == 'cascade: {model: "openai:small", fails_below: 0.2}'
