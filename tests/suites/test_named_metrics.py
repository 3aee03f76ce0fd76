"""Metrics named on a command line: names, and names with options."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.metric_names import metric_graders, read_metrics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("safety", ["safety"]),
        (" safety, refusal,own.py:short,polite.yaml, ", ["safety", "refusal", "own.py:short", "polite.yaml"]),
        ("{metric: fuzzy_ratio, threshold: 0.9}", [{"metric": "fuzzy_ratio", "threshold": 0.9}]),
        (
            'own.py:short, {"metric": "topic_adherence", "config": {"topics": ["a", "b"]}}, C:\\kind.yaml',
            ["own.py:short", {"metric": "topic_adherence", "config": {"topics": ["a", "b"]}}, "C:\\kind.yaml"],
        ),
    ],
)
def test_names_and_mappings_are_read(text: str, expected: list[Any]) -> None:
    assert read_metrics(text) == expected


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{metric: fuzzy_ratio", "cannot be read; write a metric with options as {metric: fuzzy_ratio"),
        ("{threshold: 0.9}", "does not name a metric; write a metric with options as"),
        ("{metric: 7}", "does not name a metric"),
        ("safety, 7, {metric: refusal}", "'7' does not name a metric"),
        ("{metric: !!python/name:os.system x}", "cannot be read"),
    ],
)
def test_what_is_neither_is_told_how_to_write_it(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_metrics(text)
    assert complaint in str(caught.value)


def test_each_becomes_a_grader_by_the_name_of_its_scores() -> None:
    names = [
        "own.py:short",
        {"metric": "turn_count", "threshold": 4},
        {"metric": "turn_count", "name": "few", "scope": "turn"},
    ]
    assert metric_graders(names, scope="conversation") == {
        "short": {"kind": "metric", "metric": "own.py:short", "scope": "conversation"},
        "turn_count": {"kind": "metric", "metric": "turn_count", "scope": "conversation", "threshold": 4},
        "few": {"kind": "metric", "metric": "turn_count", "scope": "turn"},
    }
    with pytest.raises(UsageError, match=r"each metric needs a different name; got turn_count, turn_count; .*name: …"):
        metric_graders(["turn_count", {"metric": "turn_count"}])
