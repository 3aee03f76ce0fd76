"""The UI messages of Vercel's AI SDK become ours and come back as they were."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import UserPromptPart as Asked
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from pydantic_ai.ui.vercel_ai.request_types import UIMessage

from features.formats.translation import back_and_forth, read_values
from vivavoce.features.formats.vercel import FORMAT

texts = st.text()
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda item: st.lists(item, max_size=2)
)
STATES = st.sampled_from(["input-streaming", "input-available", "approval-requested", "output-available"])


def part(type_: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    more = {"state": st.just("done"), "providerMetadata": st.just({"p": {"a": 1}})}
    optional = {key: value for key, value in more.items() if key not in fields}
    return st.fixed_dictionaries({"type": st.just(type_), **fields}, optional=optional)


text_parts = st.one_of(
    part("text", text=texts),
    part("file", mediaType=st.sampled_from(["image/png", "text/plain"]), url=st.just("data:image/png;base64,aGk=")),
    part("file", mediaType=st.just("application/pdf"), url=st.just("https://example.org/a.pdf")),
    part("data-weather", data=json_values),
)
answer_parts = st.one_of(
    part("text", text=texts),
    part("step-start"),
    part("reasoning", text=texts),
    part("source-url", sourceId=texts, url=texts),
    part("data-weather", data=json_values),
    part("tool-weather", toolCallId=texts, state=STATES, input=json_values, output=json_values),
    part("tool-weather", toolCallId=texts, state=st.just("output-available"), input=json_values, output=texts),
    part("tool-weather", toolCallId=texts, state=st.just("output-error"), input=json_values, errorText=texts),
    part("tool-weather", toolCallId=texts, state=st.just("output-denied"), approval=st.just({"approved": False})),
    part("dynamic-tool", toolName=texts, toolCallId=texts, state=STATES, input=json_values, output=json_values),
    part("tool-invocation", toolInvocation=st.just({"state": "result", "toolCallId": "c", "args": {}, "result": 1})),
)
MORE: dict[str, st.SearchStrategy[Any]] = {"id": texts, "metadata": json_values}


def message_of(role: str, parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"role": st.just(role), "parts": st.lists(parts, max_size=5)}, optional=MORE)


messages = st.one_of(
    message_of("user", text_parts),
    message_of("system", part("text", text=texts)),
    message_of("assistant", answer_parts),
)


@given(st.lists(messages, min_size=1, max_size=4))
def test_what_is_read_is_written_as_it_was(entries: list[Any]) -> None:
    assert back_and_forth(FORMAT, [{"messages": entries}]) == [{"messages": entries}]


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "metadata"}


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
OURS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "And in Rome?"},
    {"role": "assistant", "content": "One moment.", "tool_calls": [CALL]},
    {"role": "tool", "content": "rain", "tool_call_id": "c1"},
    {"role": "assistant", "content": "It rains."},
]


def test_an_answer_of_several_steps_is_several_messages() -> None:
    tool = {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {"city": "Rome"}}
    answer: list[Any] = [
        {"type": "step-start"},
        {"type": "text", "text": "One moment.", "state": "done"},
        {**tool, "output": {"sky": "rain"}},
        {"type": "step-start"},
        {"type": "reasoning", "text": "hm"},
        {"type": "text", "text": "It rains.", "state": "done"},
    ]
    question = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "And in Rome?"}]}
    [row], loss = read_values(FORMAT, [{"id": "chat", "messages": [question, {"role": "assistant", "parts": answer}]}])
    assert [plain(message) for message in row["messages"]] == [
        *OURS[1:3],
        {"role": "tool", "content": '{"sky": "rain"}', "tool_call_id": "c1"},
        OURS[4],
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "reasoning")]


def test_what_another_implementation_writes_is_read() -> None:
    history: list[ModelMessage] = [
        ModelRequest(parts=[Asked("And in Rome?")]),
        ModelResponse(parts=[TextPart("One moment."), ToolCallPart("weather", {"city": "Rome"}, tool_call_id="c1")]),
        ModelRequest(parts=[ToolReturnPart("weather", "rain", tool_call_id="c1")]),
        ModelResponse(parts=[TextPart("It rains.")]),
    ]
    dumped = VercelAIAdapter[Any, Any].dump_messages(history)
    as_json = [json.loads(message.model_dump_json(by_alias=True)) for message in dumped]
    [row], loss = read_values(FORMAT, [as_json])
    assert [plain(message) for message in row["messages"]] == OURS[1:]
    assert loss.is_lossless


def test_another_implementation_reads_what_is_written() -> None:
    assert FORMAT.write is not None
    _, loss = read_values(FORMAT, [])
    [document] = FORMAT.write([{"messages": OURS}], loss)
    assert [message["role"] for message in document["messages"]] == ["system", "user", "assistant"]
    ui = TypeAdapter(list[UIMessage]).validate_python(document["messages"])
    loaded = VercelAIAdapter[Any, Any].load_messages(ui)
    kinds = [part.part_kind for message in loaded for part in message.parts]
    assert kinds == ["system-prompt", "user-prompt", "text", "tool-call", "tool-return", "text"]
    [row], _ = read_values(FORMAT, [document])
    assert [plain(message) for message in row["messages"]] == OURS
    assert loss.is_lossless


def test_a_broken_conversation_is_told_and_the_next_is_read() -> None:
    good = {"role": "user", "parts": [{"type": "text", "text": "Hi."}]}
    broken: list[Any] = [[good, None], [{"role": "user", "parts": [5]}], [{"role": "x", "parts": []}], 7]
    rows, loss = read_values(FORMAT, [*broken, [good]])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == len(broken)
