"""Pydantic AI's messages become ours and come back as the same messages."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.test import TestModel

from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.objects import conversation_of
from vivavoce.features.formats.pydantic_ai import FORMAT

texts = st.text()
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda item: st.lists(item, max_size=2)
)
objects = st.dictionaries(texts, json_values, max_size=2)
TIME = "2026-01-02T03:04:05Z"
prompts: st.SearchStrategy[Any] = texts | st.lists(
    st.one_of(
        texts,
        st.sampled_from(
            [
                {"kind": "image-url", "url": "https://example.org/a.png"},
                {"kind": "binary", "data": "aGk=", "media_type": "image/png"},
                {"kind": "document-url", "url": "https://example.org/a.pdf"},
            ]
        ),
    ),
    max_size=2,
)


def part(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"part_kind": st.just(kind), **fields}, optional={"timestamp": st.just(TIME)})


request_messages = st.one_of(
    part("system-prompt", content=texts),
    part("user-prompt", content=prompts),
    part("tool-return", tool_name=texts, content=texts | objects, tool_call_id=texts),
    part("tool-return", tool_name=texts, content=texts, tool_call_id=texts, outcome=st.just("success")),
    part("retry-prompt", tool_name=texts, content=texts, tool_call_id=texts),
    part("retry-prompt", content=texts),
    part("speech", content=texts),
)
response_messages = st.one_of(
    part("text", content=texts),
    part("thinking", content=texts),
    part("tool-call", tool_name=texts, args=objects | st.just('{"n": 1}'), tool_call_id=texts),
    part("builtin-tool-call", tool_name=texts, args=objects, tool_call_id=texts),
    part("builtin-tool-return", tool_name=texts, content=texts, tool_call_id=texts),
)
requests = st.fixed_dictionaries(
    {"kind": st.just("request"), "parts": st.lists(request_messages, min_size=1, max_size=4)},
    optional={"instructions": st.sampled_from(["Be kind.", "Be brief."]), "run_id": texts},
)
responses = st.fixed_dictionaries(
    {"kind": st.just("response"), "parts": st.lists(response_messages, min_size=1, max_size=5)},
    optional={"model_name": texts, "timestamp": st.just(TIME), "usage": st.just({"input_tokens": 1})},
)
QUESTION = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi."}]}


@given(st.lists(requests | responses, max_size=4))
def test_what_is_read_is_written_as_it_was(entries: list[Any]) -> None:
    messages = [QUESTION, *[item for item in entries if any(part["part_kind"] != "speech" for part in item["parts"])]]
    assert back_and_forth(FORMAT, [{"messages": messages}]) == [{"messages": messages}]


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("metadata", "timestamp")}


async def history() -> tuple[Any, list[ModelMessage]]:
    agent = Agent(TestModel(custom_output_text="It rains."), instructions="Be kind.")

    @agent.tool_plain
    def weather(city: str) -> dict[str, str]:
        return {"sky": f"rain in {city}"}

    assert weather
    first = await agent.run("And in Rome?")
    result = await agent.run("And in Oslo?", message_history=first.all_messages())
    return result, result.all_messages()


async def test_the_history_of_an_agent_is_read_and_comes_back() -> None:
    result, messages = await history()
    [row], loss = read_values(FORMAT, [json.loads(result.all_messages_json())])
    call = row["messages"][2]["tool_calls"][0]
    function = {"name": "weather", "arguments": '{"city": "a"}'}
    assert call["function"] == function
    assert [plain(message) for message in row["messages"]] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "And in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": '{"sky": "rain in a"}', "name": "weather", "tool_call_id": call["id"]},
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "And in Oslo?"},
        {"role": "assistant", "content": "It rains."},
    ]
    assert loss.is_lossless
    assert FORMAT.write is not None
    [document] = FORMAT.write(json.loads(json.dumps([row])), loss)
    assert ModelMessagesTypeAdapter.validate_python(document["messages"]) == messages
    live = conversation_of(result)
    assert live is not None
    assert [plain(message) for message in live["messages"]] == [plain(message) for message in row["messages"]]


def test_the_package_takes_what_is_written() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    ours: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, image]},
        {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It rains."},
    ]
    assert FORMAT.write is not None
    _, loss = read_values(FORMAT, [])
    [document] = FORMAT.write([{"messages": ours}], loss)
    parsed = ModelMessagesTypeAdapter.validate_python(document["messages"])
    assert [[part.part_kind for part in message.parts] for message in parsed] == [
        *(["system-prompt", "user-prompt"], ["text", "tool-call"], ["tool-return"], ["text"]),
    ]
    [row], _ = read_values(FORMAT, [json.loads(ModelMessagesTypeAdapter.dump_json(parsed))])
    with_names = [{**message, "name": "weather"} if message["role"] == "tool" else message for message in ours]
    assert [plain(message) for message in row["messages"]] == with_names
    assert loss.is_lossless


def test_conversations_have_the_id_that_their_messages_have() -> None:
    named_messages = [{**QUESTION, "conversation_id": "a"}, {**QUESTION, "conversation_id": "a"}]
    rows, _ = read_values(FORMAT, [named_messages, [{**QUESTION, "conversation_id": "b"}, *named_messages]])
    assert [row.get("id") for row in rows] == ["a", None]


def test_a_broken_conversation_is_told_and_the_next_is_read() -> None:
    broken: list[Any] = [[QUESTION, None], [{"kind": "request", "parts": [5]}], [{"kind": "x", "parts": []}], 7]
    rows, loss = read_values(FORMAT, [*broken, [QUESTION]])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == len(broken)
