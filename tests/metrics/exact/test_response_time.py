from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.exact.response_time import ConversationDurationMetric, ResponseTimeMetric


def said(role: str, at: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": "…", **({"timestamp": at} if at else {})}


LOGGED = [
    said("user", "2025-03-01T10:00:00Z"),
    said("assistant", "2025-03-01T10:00:01Z"),
    said("assistant", "2025-03-01T10:00:03Z"),
    said("user", "2025-03-01T10:01:00Z"),
    said("assistant", "2025-03-01T10:01:01+00:00"),
]


def test_the_time_of_a_turn_ends_with_its_last_answer() -> None:
    result = ResponseTimeMetric().evaluate(LOGGED)
    assert result.score == 2.0
    assert result.details["seconds"] == [3.0, 1.0]
    assert "slowest: turn 1" in str(result.reasoning)


def test_what_the_run_measured_goes_before_timestamps() -> None:
    result = ResponseTimeMetric(statistic="max").evaluate(LOGGED, turn_seconds=(None, 7.5))
    assert result.details["seconds"] == [3.0, 7.5]
    assert result.score == 7.5


def test_each_turn_has_its_own_time_in_pieces_too() -> None:
    result = ResponseTimeMetric(scope="turn").evaluate(LOGGED, turn_seconds=(2.0, 4.0))
    assert [turn.raw for turn in result.turns or ()] == [2.0, 4.0]


@pytest.mark.parametrize(
    "turn",
    [
        [said("user"), said("assistant", "2025-03-01T10:00:01Z")],
        [said("user", "2025-03-01T10:00:00Z"), said("assistant", "2025-03-01T09:00:00Z")],
        [said("user", "2025-03-01T10:00:00"), said("assistant", "2025-03-01T10:00:01Z")],
        [said("user", "2025-03-01T10:00:00Z")],
    ],
    ids=["no start", "clock set back", "one without a time zone", "no answer"],
)
def test_a_time_that_cannot_be_known_is_not_guessed(turn: list[dict[str, Any]]) -> None:
    assert ResponseTimeMetric().evaluate(turn).state == "skipped"
    both = ResponseTimeMetric().evaluate([*turn, *LOGGED])
    assert (both.score, both.details["seconds"]) == (2.0, [None, 3.0, 1.0])


def test_a_conversation_lasts_from_its_first_to_its_last_timestamp() -> None:
    assert ConversationDurationMetric().evaluate([*LOGGED, said("user")]).score == 61.0


def test_a_duration_needs_two_timestamps_that_compare() -> None:
    assert ConversationDurationMetric().evaluate(LOGGED[:1]).state == "skipped"
    mixed = ConversationDurationMetric().evaluate([*LOGGED, said("user", "2025-03-01T10:00:00")])
    assert mixed.reasoning == "some timestamps have a time zone and others do not"
