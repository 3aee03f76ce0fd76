from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vivavoce.metrics.exact.counts import MessageCountMetric, ToolCallCountMetric, TurnCountMetric

BOOKING: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "book it"},
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "search", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "found"},
    {"role": "assistant", "tool_calls": [{"id": "2", "name": "book", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "2", "content": "done"},
    {"role": "assistant", "content": "Booked."},
    {"role": "user", "content": "thanks"},
]


def test_tool_calls_are_steps_inside_a_turn() -> None:
    assert TurnCountMetric().evaluate(BOOKING).score == 2
    result = MessageCountMetric().evaluate(BOOKING)
    assert result.score == 8
    assert result.details["roles"] == {"system": 1, "user": 2, "assistant": 3, "tool": 2}


def test_tools_are_counted_by_name_and_chosen_by_name() -> None:
    result = ToolCallCountMetric().evaluate(BOOKING)
    assert (result.score, result.details["tools"]) == (2, {"search": 1, "book": 1})
    assert ToolCallCountMetric(only=["book"]).evaluate(BOOKING).score == 1
    assert ToolCallCountMetric(ignore=["book", "search"]).evaluate(BOOKING).score == 0
    assert ToolCallCountMetric().fingerprint != ToolCallCountMetric(ignore=["book"]).fingerprint


def test_a_threshold_is_the_most_that_passes() -> None:
    assert TurnCountMetric(threshold=2).evaluate(BOOKING).passed is True
    assert TurnCountMetric(threshold=1).evaluate(BOOKING).passed is False
    assert TurnCountMetric().evaluate(BOOKING).passed is None


def test_only_tool_messages_make_no_turn_and_nothing_at_all_is_skipped() -> None:
    lone = [{"role": "tool", "tool_call_id": "1", "content": "found"}]
    assert TurnCountMetric().evaluate(lone).score == 0
    assert MessageCountMetric().evaluate(lone).score == 1
    assert MessageCountMetric().evaluate([]).state == "skipped"


@given(st.lists(st.sampled_from(["user", "assistant"]), min_size=1))
def test_the_pieces_of_a_conversation_hold_all_its_messages(roles: list[str]) -> None:
    messages = [{"role": role, "content": "…"} for role in roles]
    whole, turns = MessageCountMetric().evaluate(messages), TurnCountMetric().evaluate(messages)
    assert whole.score == len(roles)
    assert turns.score == roles.count("user")
