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
    st.none() | st.booleans() | st.integers() | texts, lambda one: st.lists(one, max_size=2)
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


def made(kind: type[BaseMessage], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[BaseMessage]:
    """Return messages of a class with these fields, and some with more."""
    return st.builds(kind.model_validate, st.fixed_dictionaries({"content": contents, **fields}, optional=MORE))


messages: st.SearchStrategy[BaseMessage] = st.one_of(
    made(HumanMessage, name=st.none() | texts),
    made(SystemMessage),
    made(AIMessage, tool_calls=st.lists(call, max_size=2), usage_metadata=st.sampled_from([None, COUNTS])),
    made(
        ToolMessage,
        name=st.none() | texts,
        tool_call_id=texts,
        status=st.sampled_from(["success", "error"]),
        artifact=json_values,
    ),
    made(ChatMessage, role=st.sampled_from(["user", "assistant", "system"])),
    made(FunctionMessage, name=texts),
    made(AIMessageChunk),
)


def spellings(said: list[BaseMessage]) -> list[list[Any]]:
    """Return messages as the package itself writes them, as JSON has them."""
    written = [messages_to_dict(said), [dumpd(one) for one in said], [one.model_dump(mode="json") for one in said]]
    return json.loads(json.dumps(written))


@given(st.lists(messages, min_size=1, max_size=4))
def test_what_the_package_writes_is_written_as_it_was(said: list[BaseMessage]) -> None:
    for spelled in spellings(said):
        assert back_and_forth(FORMAT, [spelled]) == [{"messages": spelled}]


@given(st.lists(messages, min_size=1, max_size=4))
def test_the_package_reads_what_is_written(said: list[BaseMessage]) -> None:
    assert FORMAT.write is not None
    rows, loss = read_values(FORMAT, [messages_to_dict(said)])
    [written] = FORMAT.write(rows, loss)
    assert messages_from_dict(written["messages"]) == said


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
    [written] = FORMAT.write([{"id": "a", "messages": ours}], loss)
    assert messages_from_dict(written["messages"]) == [
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
    said: list[Any] = [
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [wire]}}},
        {"type": "tool", "data": {"content": "rain", "tool_call_id": "c1"}},
        {"type": "ai", "data": {"content": [{"type": "text", "text": "One moment."}, block]}},
        {"type": "tool", "data": {"content": [{"type": "text", "text": "rain"}], "tool_call_id": "c2"}},
    ]
    [row], loss = read_values(FORMAT, [said])
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
    said = AIMessage(content="", tool_calls=[{"name": "f", "args": {}, "id": "c0"}], invalid_tool_calls=[broken])
    for spelled in spellings([said]):
        [row], loss = read_values(FORMAT, [spelled])
        calls = [call["function"] for call in row["messages"][0]["tool_calls"]]
        assert calls == [{"name": "f", "arguments": "{}"}, {"name": "look_up", "arguments": '{"a": '}]
        assert back_and_forth(FORMAT, [spelled]) == [{"messages": spelled}]
    [row], loss = read_values(FORMAT, [messages_to_dict([said])])
    ours: dict[str, Any] = {**row["messages"][0], "metadata": {}}
    assert FORMAT.write is not None
    [written] = FORMAT.write([{"id": "a", "messages": [ours]}], loss)
    [there] = messages_from_dict(written["messages"])
    assert isinstance(there, AIMessage)
    assert (there.tool_calls, there.invalid_tool_calls) == (said.tool_calls, [{**broken, "error": None}])
    assert loss.is_lossless


@given(st.lists(messages, min_size=1, max_size=4))
def test_a_live_object_says_the_same_as_its_file(said: list[BaseMessage]) -> None:
    [row], _ = read_values(FORMAT, [json.loads(json.dumps(messages_to_dict(said)))])
    for message, written in zip(said, row["messages"], strict=True):
        if (live := as_row(message)) is None:  # messages of a role of one's own are read by the format alone
            assert isinstance(message, ChatMessage)
            continue
        ours = [read_message(one).to_dict() for one in (live, written)]
        kept = ("role", "content", "name", "tool_call_id", "tool_calls")
        assert [ours[0].get(key) or None for key in kept] == [ours[1].get(key) or None for key in kept]


def test_who_speaks_is_kept_and_what_is_guessed_is_told() -> None:
    said: list[Any] = [
        {"type": "human", "content": "Hi.", "name": "ann", "additional_kwargs": {}},
        {"type": "chat", "content": "Hello.", "role": "narrator"},
        {"type": "remove", "content": "", "id": "m"},
    ]
    [row], loss = read_values(FORMAT, [said])
    assert [(message["role"], message["name"]) for message in row["messages"]] == [
        ("user", "ann"),
        ("assistant", "narrator"),
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("dropped", "remove: the order to delete a message"),
        ("guessed", "that 'narrator' speaks for the assistant"),
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
