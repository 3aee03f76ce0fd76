from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    AudioPart,
    ConversationHistory,
    FilePart,
    FileReference,
    FunctionCall,
    HumanMessage,
    ImagePart,
    ImageURL,
    InputAudio,
    RefusalPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    dump_messages,
    load_messages,
    mark_of,
    pretty,
    read_message,
    read_messages,
    split_turns,
    windows,
)

CALL: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"order": "007"}'},
}


def ai(data: dict[str, Any]) -> AIMessage:
    message = read_message(data)
    assert isinstance(message, AIMessage)
    return message


def only_call(data: dict[str, Any]) -> ToolCall:
    calls = ai({"role": "assistant", "tool_calls": [data]}).tool_calls
    assert calls is not None
    return calls[0]


def test_each_role_is_its_own_class() -> None:
    roles = ["system", "developer", "user", "assistant", "tool"]
    read = read_messages([{"role": role, "content": "x"} for role in roles])
    assert [type(message) for message in read] == [SystemMessage, SystemMessage, HumanMessage, AIMessage, ToolMessage]
    assert [message.role for message in read] == roles


@pytest.mark.parametrize(
    "spelling",
    [
        CALL,
        {"id": "c1", "name": "look_up", "args": {"order": "007"}},
        {"id": "c1", "name": "look_up", "arguments": {"order": "007"}},
        {"id": "c1", "name": "look_up", "arguments": '{"order": "007"}'},
        {"id": "c1", "name": "look_up", "args": {"order": "007"}, "type": "tool_call"},
        {"id": "c1", "function": {"name": "look_up", "arguments": {"order": "007"}}},
    ],
)
def test_every_spelling_of_a_tool_call_is_the_wire_shape(spelling: dict[str, Any]) -> None:
    call = only_call(spelling)
    assert call.to_dict() == CALL
    assert (call.name, call.args) == ("look_up", {"order": "007"})


@pytest.mark.parametrize("fields", [{"name": "now"}, {"name": "now", "args": None}, {"function": {"name": "now"}}])
def test_a_call_without_arguments_has_none(fields: dict[str, Any]) -> None:
    call = only_call(fields)
    assert call.args == {}
    assert call.to_dict()["function"] == {"name": "now", "arguments": "{}"}


def test_a_call_of_a_custom_tool_is_a_call_with_its_input() -> None:
    call = only_call({"id": "c", "type": "custom", "custom": {"name": "code_exec", "input": "print(1)"}})
    assert (call.id, call.type, call.name, call.args) == ("c", "function", "code_exec", {"input": "print(1)"})


def test_arguments_stay_as_the_model_wrote_them() -> None:
    call = only_call({"function": {"name": "f", "arguments": '{"a":1,'}})
    assert call.function.arguments == '{"a":1,'
    with pytest.raises(ValueError, match="Expecting"):
        _ = call.args


def test_arguments_that_are_no_object_are_refused_when_asked_for() -> None:
    with pytest.raises(ValueError, match="arguments of f are not a JSON object"):
        _ = ToolCall(function=FunctionCall(name="f", arguments="[1]")).args


@pytest.mark.parametrize("value", [float("nan"), datetime(2024, 5, 1), {1, 2}])
def test_arguments_that_json_does_not_have_are_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="JSON"):
        ToolCall(name="f", args={"a": value})


def test_ragas_types_are_roles() -> None:
    rows = [{"content": "a", "type": "human"}, {"content": "b", "type": "ai", "tool_calls": None, "metadata": None}]
    assert [message.role for message in read_messages(rows)] == ["user", "assistant"]


def test_one_row_in_another_spelling_does_not_hide_the_rest() -> None:
    rows = [{"role": "user", "content": "a"}, {"type": "ai", "content": "b"}, HumanMessage(content="c")]
    assert [message.role for message in read_messages(rows)] == ["user", "assistant", "user"]


MULTIMODAL = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
]


def test_parts_come_back_as_they_were_given() -> None:
    message = read_message({"role": "user", "content": MULTIMODAL})
    assert message.to_dict() == {"role": "user", "content": MULTIMODAL}
    assert message.text == "What is this?"
    assert (
        read_message({"role": "user", "content": MULTIMODAL[1:3]}).pretty_repr() == "Human: [image_url] [input_audio]"
    )


def test_parts_built_in_python_keep_their_type() -> None:
    message = HumanMessage(
        content=[
            TextPart(text="hi"),
            ImagePart(image_url=ImageURL(url="data:image/png;base64,aGk=")),
            AudioPart(input_audio=InputAudio(data="aGk=", format="mp3")),
            FilePart(file=FileReference(file_data="aGk=")),
            RefusalPart(refusal="no"),
        ]
    )
    kinds = [part["type"] for part in message.to_dict()["content"]]
    assert kinds == ["text", "image_url", "input_audio", "file", "refusal"]
    assert load_messages(dump_messages([message])) == [message]


def test_what_a_provider_added_is_kept_at_every_level() -> None:
    row: dict[str, Any] = {
        "role": "assistant",
        "content": [{"type": "text", "text": "hi", "annotations": [{"url": "u"}]}],
        "reasoning_content": "thinking",
        "tool_calls": [{**CALL, "index": 0, "function": {**CALL["function"], "strict": True}}],
    }
    assert read_message(row).to_dict() == row
    assert load_messages(json.dumps([row]))[0].to_dict() == row


def test_the_wire_leaves_out_our_own_annotations() -> None:
    message = HumanMessage(
        content="hi", timestamp=datetime(2024, 5, 1, tzinfo=UTC), metadata={"a": 1}, retrieval_context=["doc"]
    )
    assert message.to_wire() == {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 5, 1, 10, 30, 0, 123456),
        datetime(2024, 5, 1, 10, 30, tzinfo=UTC),
        datetime(2024, 5, 1, 10, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_a_timestamp_survives_with_its_zone(moment: datetime) -> None:
    [again] = load_messages(dump_messages([HumanMessage(content="hi", timestamp=moment)]))
    assert again.timestamp == moment
    assert again.timestamp is not None
    assert again.timestamp.utcoffset() == moment.utcoffset()


def test_texts_that_look_like_something_else_stay_texts() -> None:
    row = {"role": "user", "content": "2024-05-01", "metadata": {"n": "007", "day": "2024-05-01", "none": None}}
    assert load_messages(dump_messages([read_message(row)]))[0].to_dict() == row


def test_a_number_that_is_none_is_not_turned_into_null() -> None:
    [again] = load_messages(dump_messages([HumanMessage(content="hi", metadata={"x": float("inf")})]))
    assert again.metadata == {"x": float("inf")}


texts = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
calls = st.builds(ToolCall, id=st.none() | texts, name=texts, args=st.dictionaries(texts, json_values, max_size=3))
notes: dict[str, Any] = {
    "metadata": st.none() | st.dictionaries(texts, json_values, max_size=2),
    "retrieval_context": st.none() | st.lists(texts | st.dictionaries(texts, json_values, max_size=2), max_size=2),
    "timestamp": st.none() | st.datetimes(timezones=st.none() | st.just(UTC)),
}
any_messages = st.one_of(
    st.builds(SystemMessage, content=texts),
    st.builds(HumanMessage, content=texts | st.lists(st.builds(TextPart, text=texts), max_size=2), **notes),
    st.builds(AIMessage, content=st.none() | texts, tool_calls=st.none() | st.lists(calls, max_size=2), **notes),
    st.builds(ToolMessage, content=texts, tool_call_id=st.none() | texts),
)


@given(st.lists(any_messages, max_size=4))
def test_dump_and_load_lose_nothing(messages: list[AnyMessage]) -> None:
    dumped = dump_messages(messages)
    assert load_messages(dumped) == messages
    assert dump_messages(load_messages(dumped)) == dumped


@given(st.dictionaries(texts, json_values, max_size=3))
def test_tool_arguments_keep_their_types_and_keys(args: dict[str, Any]) -> None:
    again = ToolCall(name="f", args=args).args
    assert json.dumps(again) == json.dumps(args)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"content": "a"}, "message 1: needs a role: system, user, assistant or tool"),
        ({"role": "bot", "content": "a"}, "message 1: needs a role: system, user, assistant or tool, got 'bot'"),
        ({"type": ["human"], "content": "a"}, "message 1: needs a role"),
        ({"role": "user", "content": 5}, "message 1 content: should be a valid string, got 5"),
        ({"role": "user", "content": [{"type": "video"}]}, "message 1 content.0: needs a type: 'text', 'image_url'"),
        ({"role": "user", "content": [{"text": "a"}]}, "message 1 content.0: needs a type: text"),
        ({"role": "user", "content": [{"type": "text"}]}, "message 1 content.0.text: is missing"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "message 1 tool_calls.0.function: is missing"),
        ({"role": "user", "content": "a", "timestamp": "later"}, "message 1 timestamp: .*, got 'later'"),
        ("hello", "message 1: should be a valid dictionary, got 'hello'"),
    ],
)
def test_an_error_names_the_message_the_rule_and_what_was_got(row: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"^{rule}"):
        read_messages([{"role": "user", "content": "fine"}, row])


@pytest.mark.parametrize(
    ("row", "key"),
    [
        ({"role": "assistant", "text": "Hello."}, "text"),
        ({"role": "user", "contents": ["a", "the longer one"]}, "contents.1"),
        ({"type": "human", "data": {"content": "Hello.", "id": "1"}}, "data.content"),
        ({"role": "user", "parts": [{"text": "Hello."}]}, "parts.0.text"),
        (AIMessage(tool_calls=[], text="Hello."), "text"),  # pyright: ignore[reportCallIssue]
    ],
)
def test_words_under_an_unknown_key_alone_are_an_error_that_names_it(row: Any, key: str) -> None:
    rule = f"^message 1: has no 'content', and the text under '{key}' is not read; write it as 'content'"
    with pytest.raises(ValueError, match=rule):
        read_messages([{"role": "user", "content": "fine"}, row])


@pytest.mark.parametrize(
    "row",
    [
        {"role": "assistant", "content": None, "reasoning": "hm"},
        {"role": "assistant", "content": "", "reasoning": "hm"},
        {"role": "assistant", "tool_calls": [CALL], "reasoning": "hm"},
        {"role": "assistant", "refusal": "No.", "reasoning": "hm"},
        {"role": "assistant", "step": 3},
    ],
)
def test_an_unknown_key_beside_content_or_calls_is_kept(row: dict[str, Any]) -> None:
    assert read_message(row).to_dict() == row


def test_a_long_value_is_shortened_in_an_error() -> None:
    with pytest.raises(ValueError, match=r"got \['x+\.\.\.$"):
        read_messages([{"role": "user", "name": ["x" * 1000]}])


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        HumanMessage(content="a").content = "b"


def test_a_conversation_reads_as_lines() -> None:
    message = ai({"role": "assistant", "content": "One moment.", "tool_calls": [CALL]})
    assert message.pretty_repr() == 'AI: One moment.\n  → look_up({"order": "007"})'
    assert ai({"role": "assistant", "tool_calls": [CALL]}).pretty_repr() == '  → look_up({"order": "007"})'
    assert ToolMessage(content="shipped").pretty_repr() == "Tool: shipped"
    assert SystemMessage(role="developer", content="Be brief.").pretty_repr() == "System: Be brief."


ROWS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


def message(role: str) -> AnyMessage:
    return {"u": HumanMessage, "a": AIMessage, "t": ToolMessage, "s": SystemMessage}[role](content=role)


def conversation(roles: str) -> list[AnyMessage]:
    return [message(role) for role in roles]


def roles(messages: list[AnyMessage]) -> str:
    return "".join(message.role[0] if message.role != "tool" else "t" for message in messages)


@pytest.mark.parametrize(
    ("text", "before", "turns"),
    [
        ("", "", []),
        ("sa", "sa", []),
        ("ua", "", ["ua"]),
        ("suatauua", "s", ["uata", "u", "ua"]),
        ("auau", "a", ["ua", "u"]),
    ],
)
def test_a_turn_runs_from_one_user_message_to_the_next(text: str, before: str, turns: list[str]) -> None:
    head, split = split_turns(conversation(text))
    assert roles(head) == before
    assert [roles(turn) for turn in split] == turns


@given(st.text(alphabet="suat", max_size=12))
def test_splitting_loses_no_message(given: str) -> None:
    messages = conversation(given)
    head, turns = split_turns(messages)
    assert [*head, *(message for turn in turns for message in turn)] == messages
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
    assert [message.text for message in opening] == ["s"]
    assert [[message.text for message in turn] for turn in turns] == [["a", "b"], ["Welcome back", "c", "b"], ["d"]]
    assert [mark and mark.number for mark in map(mark_of, turns)] == [1, 2, 3]
