from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.conversation import ConversationHistory, mark_of, pretty, split_turns, windows
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, read_messages

ROWS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def message(role: str) -> AnyMessage:
    return {"u": HumanMessage, "a": AIMessage, "t": ToolMessage, "s": SystemMessage}[role](content=role)


def conversation(roles: str) -> list[AnyMessage]:
    return [message(role) for role in roles]


def roles(messages: list[AnyMessage]) -> str:
    return "".join(one.role[0] if one.role != "tool" else "t" for one in messages)


@pytest.mark.parametrize(
    ("given", "before", "turns"),
    [
        ("", "", []),
        ("sa", "sa", []),
        ("ua", "", ["ua"]),
        ("suatauua", "s", ["uata", "u", "ua"]),
        ("auau", "a", ["ua", "u"]),
    ],
)
def test_a_turn_runs_from_one_user_message_to_the_next(given: str, before: str, turns: list[str]) -> None:
    head, split = split_turns(conversation(given))
    assert roles(head) == before
    assert [roles(turn) for turn in split] == turns


@given(st.text(alphabet="suat", max_size=12))
def test_splitting_loses_no_message(given: str) -> None:
    messages = conversation(given)
    head, turns = split_turns(messages)
    assert [*head, *(one for turn in turns for one in turn)] == messages
    assert len(turns) == given.count("u")


def test_windows_hold_a_turn_and_those_before_it() -> None:
    _, turns = split_turns(conversation("uauaua"))
    assert [len(window) for window in windows(turns, 2)] == [2, 4, 4]
    assert list(windows([], 3)) == []


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 turn, got 0"):
        list(windows([[message("u")]], 0))


def test_a_history_survives_dicts_and_json() -> None:
    history = ConversationHistory.from_dict_list(ROWS)
    assert history.to_dict_list() == ROWS
    assert ConversationHistory.model_validate_json(history.model_dump_json()) == history
    assert history.turns == history.messages


def test_a_history_reads_messages_under_their_older_name() -> None:
    again = ConversationHistory.model_validate({"turns": ROWS, "conversation_id": "c"})
    assert (again.to_dict_list(), again.conversation_id) == (ROWS, "c")


def test_a_history_refuses_what_it_does_not_know() -> None:
    with pytest.raises(ValidationError, match="colour"):
        ConversationHistory.model_validate({"messages": ROWS, "colour": "red"})
    with pytest.raises(ValueError, match="message 0: needs a role"):
        ConversationHistory.from_dict_list([{"content": "a"}])


def test_a_history_reads_as_lines() -> None:
    call = AIMessage(content="Wait.", tool_calls=[ToolCall(name="f", args={"a": 1})])
    assert ConversationHistory.from_dict_list(ROWS).pretty_repr() == "Human: Hi\nAI: Hello"
    assert pretty([call, ToolMessage(content="2")]) == 'AI: Wait.\n  → f({"a": 1})\nTool: 2'


def test_plain_dicts_have_a_role_and_a_content_and_metadata_on_request() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    rows = [
        {"role": "user", "content": "Hi", "metadata": {"lang": "en"}, "timestamp": "2026-01-01T00:00:00Z"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": None},
    ]
    history = ConversationHistory.from_dict_list(rows)
    assert history.to_dict_list() == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "c1"},
    ]
    whole = history.to_dict_list(include_metadata=True)[0]
    assert (whole["metadata"], whole["timestamp"]) == ({"lang": "en"}, "2026-01-01T00:00:00Z")


def test_a_later_session_begins_a_turn_with_whatever_is_said_first_there() -> None:
    def of(number: int, role: str, text: str) -> dict[str, object]:
        return {"role": role, "content": text, "session": {"number": number}}

    answer = {"role": "assistant", "content": "b"}
    talk = [
        of(1, "user", "a"),
        answer,
        of(2, "assistant", "Welcome back"),
        of(2, "user", "c"),
        answer,
        of(3, "user", "d"),
    ]
    opening, turns = split_turns(read_messages([of(1, "system", "s"), *talk]))
    assert [one.text for one in opening] == ["s"]
    assert [[one.text for one in turn] for turn in turns] == [["a", "b"], ["Welcome back", "c", "b"], ["d"]]
    assert [mark and mark.number for mark in map(mark_of, turns)] == [1, 2, 3]
