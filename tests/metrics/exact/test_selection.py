from __future__ import annotations

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import AnyMessage, ToolCall, read_messages
from vivavoce.metrics.exact.tool_calls import of_tools, select_calls


def conversation() -> list[AnyMessage]:
    def call(key: str, name: str) -> dict[str, object]:
        return {"id": key, "name": name, "arguments": {"n": key}}

    return read_messages(
        [
            {"role": "user", "content": "book it"},
            {"role": "assistant", "tool_calls": [call("1", "search"), call("2", "book")]},
            {"role": "tool", "tool_call_id": "2", "content": "Error: no seats"},
            {"role": "tool", "tool_call_id": "1", "content": "an Error is mentioned in this flight list"},
            {"role": "assistant", "tool_calls": [call("3", "book")]},
            {"role": "tool", "tool_call_id": "3", "content": "booked"},
            {"role": "assistant", "tool_calls": [call("4", "cancel")]},
        ]
    )


def ids(calls: list[ToolCall]) -> list[str | None]:
    return [call.id for call in calls]


def test_without_conditions_every_call_counts_in_order() -> None:
    assert ids(select_calls(conversation())) == ["1", "2", "3", "4"]


def test_failed_calls_are_dropped_by_their_own_result() -> None:
    assert ids(select_calls(conversation(), failed_when="^Error")) == ["1", "3", "4"]


def test_only_and_ignore_choose_tools_together() -> None:
    assert ids(select_calls(conversation(), only=["book", "cancel"])) == ["2", "3", "4"]
    assert ids(select_calls(conversation(), ignore=["book"])) == ["1", "4"]
    assert ids(select_calls(conversation(), only=["book", "cancel"], ignore=["cancel"])) == ["2", "3"]


def test_the_reference_is_chosen_alike() -> None:
    reference = [ToolCall(name="search", args={}), ToolCall(name="book", args={})]
    assert of_tools(reference, only=["book"]) == reference[1:]
    assert of_tools(reference, ignore=["book"]) == reference[:1]


def test_a_malformed_pattern_is_refused() -> None:
    with pytest.raises(UsageError):
        select_calls(conversation(), failed_when="(")
