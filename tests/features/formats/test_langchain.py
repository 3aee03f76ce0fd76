"""LangChain's messages become ours and come back as they were, in each of their spellings."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from features.formats.translation import back_and_forth, read_values
from vivavoce.features.formats.langchain import FORMAT
from vivavoce.langchain_messages import as_row
from vivavoce.messages import read_message

texts = st.text()
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda item: st.lists(item, max_size=2)
)
objects = st.dictionaries(texts, json_values, max_size=2)
blocks: st.SearchStrategy[Any] = st.sampled_from(
    [
        "a bare text",
        {"type": "text", "text": "words"},
        {"type": "text", "text": "words", "annotations": []},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": "https://example.org/a.png"},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
        {"type": "thinking", "thinking": "hm"},
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "tool_use", "id": "c", "name": "look_up", "input": {}},
    ]
)
contents: st.SearchStrategy[Any] = texts | st.lists(blocks, max_size=3)
statuses = st.sampled_from(["success", "error"])
COUNTS = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 1)
call = st.fixed_dictionaries({"name": texts, "args": objects, "id": st.none() | texts})
MORE: dict[str, st.SearchStrategy[Any]] = {"id": texts, "additional_kwargs": objects}


def build(kind: type[BaseMessage], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[BaseMessage]:
    """Return messages of a class with these fields, and some with more."""
    return st.builds(kind.model_validate, st.fixed_dictionaries({"content": contents, **fields}, optional=MORE))


messages: st.SearchStrategy[BaseMessage] = st.one_of(
    build(HumanMessage, name=st.none() | texts),
    build(SystemMessage),
    build(AIMessage, tool_calls=st.lists(call, max_size=2), usage_metadata=st.sampled_from([None, COUNTS])),
    build(
        ToolMessage,
        name=st.none() | texts,
        tool_call_id=texts,
        status=st.sampled_from(["success", "error"]),
        artifact=json_values,
    ),
    build(ChatMessage, role=st.sampled_from(["user", "assistant", "system"])),
    build(FunctionMessage, name=texts),
    build(AIMessageChunk),
)


def spellings(messages: list[BaseMessage]) -> list[list[Any]]:
    """Return messages as the package itself writes them, as JSON has them."""
    spellings_of_all = [
        messages_to_dict(messages),
        [dumpd(message) for message in messages],
        [message.model_dump(mode="json") for message in messages],
    ]
    return json.loads(json.dumps(spellings_of_all))


@given(st.lists(messages, min_size=1, max_size=4))
def test_what_the_package_writes_is_written_as_it_was(messages: list[BaseMessage]) -> None:
    for spelling in spellings(messages):
        assert back_and_forth(FORMAT, [spelling]) == [{"messages": spelling}]


@given(st.lists(messages, min_size=1, max_size=4))
def test_the_package_reads_what_is_written(messages: list[BaseMessage]) -> None:
    assert FORMAT.write is not None
    rows, loss = read_values(FORMAT, [messages_to_dict(messages)])
    [document] = FORMAT.write(rows, loss)
    assert messages_from_dict(document["messages"]) == messages


def test_our_own_messages_are_read_by_the_package() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    ours: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}], "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
    ]
    assert FORMAT.write is not None
    _, loss = read_values(FORMAT, [])
    [document] = FORMAT.write([{"id": "a", "messages": ours}], loss)
    assert messages_from_dict(document["messages"]) == [
        SystemMessage(content="Be kind."),
        HumanMessage(content=[{"type": "text", "text": "And here?"}], name="ann"),
        AIMessage(content="", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "c1"}]),
        ToolMessage(content="rain", tool_call_id="c1"),
    ]
    assert loss.is_lossless


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "metadata"}


def test_calls_that_a_provider_wrote_are_found() -> None:
    wire = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}}
    block = {"type": "tool_use", "id": "c2", "name": "weather", "input": {"city": "Rome"}}
    contents: list[Any] = [
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [wire]}}},
        {"type": "tool", "data": {"content": "rain", "tool_call_id": "c1"}},
        {"type": "ai", "data": {"content": [{"type": "text", "text": "One moment."}, block]}},
        {"type": "tool", "data": {"content": [{"type": "text", "text": "rain"}], "tool_call_id": "c2"}},
    ]
    [row], loss = read_values(FORMAT, [contents])
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    assert [plain(message) for message in row["messages"]] == [
        {"role": "assistant", "content": None, "tool_calls": [wire]},
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "assistant", "content": "One moment.", "tool_calls": [{"id": "c2", **call}]},
        {"role": "tool", "content": "rain", "tool_call_id": "c2"},
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "additional_kwargs")]


def test_a_call_whose_arguments_are_no_json_is_a_call_and_stays_one_for_the_package() -> None:
    broken = InvalidToolCall(name="look_up", args='{"a": ', id="c1", error="bad", type="invalid_tool_call")
    message = AIMessage(content="", tool_calls=[{"name": "f", "args": {}, "id": "c0"}], invalid_tool_calls=[broken])
    for spelling in spellings([message]):
        [row], loss = read_values(FORMAT, [spelling])
        calls = [call["function"] for call in row["messages"][0]["tool_calls"]]
        assert calls == [{"name": "f", "arguments": "{}"}, {"name": "look_up", "arguments": '{"a": '}]
        assert back_and_forth(FORMAT, [spelling]) == [{"messages": spelling}]
    [row], loss = read_values(FORMAT, [messages_to_dict([message])])
    ours: dict[str, Any] = {**row["messages"][0], "metadata": {}}
    assert FORMAT.write is not None
    [document] = FORMAT.write([{"id": "a", "messages": [ours]}], loss)
    [there] = messages_from_dict(document["messages"])
    assert isinstance(there, AIMessage)
    assert (there.tool_calls, there.invalid_tool_calls) == (message.tool_calls, [{**broken, "error": None}])
    assert loss.is_lossless


@given(st.lists(messages, min_size=1, max_size=4))
def test_a_live_object_says_the_same_as_its_file(messages: list[BaseMessage]) -> None:
    [row], _ = read_values(FORMAT, [json.loads(json.dumps(messages_to_dict(messages)))])
    for message, entry in zip(messages, row["messages"], strict=True):
        if (live := as_row(message)) is None:  # messages of a role of one's own are read by the format alone
            assert isinstance(message, ChatMessage)
            continue
        ours = [read_message(each).to_dict() for each in (live, entry)]
        keys = ("role", "content", "name", "tool_call_id", "tool_calls")
        assert [ours[0].get(key) or None for key in keys] == [ours[1].get(key) or None for key in keys]


def test_who_speaks_is_kept_and_what_is_guessed_is_told() -> None:
    messages: list[Any] = [
        {"type": "human", "content": "Hi.", "name": "ann", "additional_kwargs": {}},
        {"type": "chat", "content": "Hello.", "role": "narrator"},
        {"type": "remove", "content": "", "id": "m"},
    ]
    [row], loss = read_values(FORMAT, [messages])
    assert [(message["role"], message["name"]) for message in row["messages"]] == [
        ("user", "ann"),
        ("assistant", "narrator"),
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "remove: deletion of a message"),
        ("guessed", "that 'narrator' is the assistant"),
    ]


def test_a_broken_conversation_is_told_and_the_next_is_read() -> None:
    good = {"type": "human", "data": {"content": "Hi."}}
    broken: list[Any] = [
        [{"type": "human", "data": {"content": 5}}],
        [{"type": "narrator", "data": {"content": "x"}}],
        [good, None],
        [{"lc": 1, "type": "constructor", "id": [], "kwargs": {}}],
    ]
    rows, loss = read_values(FORMAT, [*broken, [good]])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == 4
