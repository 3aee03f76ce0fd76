"""Items of OpenAI's Responses become our messages and come back as they were."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.objects import conversation_of
from vivavoce.features.formats.openai import RESPONSES

texts = st.text()
ids = st.sampled_from(["a", "b", "c"])
parts: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "input_text", "text": "words"},
        {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
        {"type": "input_image", "file_id": "f", "detail": "auto"},
        {"type": "input_file", "file_id": "f"},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
    ]
)
answers: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "output_text", "text": "words", "annotations": []},
        {"type": "output_text", "text": "words", "annotations": [{"type": "url_citation"}], "logprobs": []},
        {"type": "refusal", "refusal": "No."},
    ]
)
MORE: dict[str, st.SearchStrategy[Any]] = {"id": texts, "status": st.just("completed")}


def item(type_: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return items of these fields; a message need not say its type."""
    kind = {"type": st.just(type_)}
    if type_ == "message":
        return st.fixed_dictionaries(fields, optional={**kind, **MORE})
    return st.fixed_dictionaries({**kind, **fields}, optional=MORE)


items: st.SearchStrategy[Any] = st.one_of(
    item(
        "message",
        role=st.sampled_from(["user", "system", "developer"]),
        content=texts | st.lists(parts, max_size=2),
    ),
    item("message", role=st.just("assistant"), content=texts | st.lists(answers, max_size=2)),
    item("function_call", call_id=ids, name=texts, arguments=st.sampled_from(["", "{}", '{"n": 1}', "cut o"])),
    item("function_call_output", call_id=ids, output=texts | st.lists(parts, max_size=2)),
    item("custom_tool_call", call_id=ids, name=texts, input=texts),
    item("custom_tool_call_output", call_id=ids, output=texts),
    item("local_shell_call", call_id=ids, action=st.just({"command": ["ls"]})),
    item("reasoning", summary=st.just([{"type": "summary_text", "text": "hm"}])),
    item("mcp_call", name=texts, server_label=texts, arguments=st.just("{}"), output=st.none() | texts),
    item("web_search_call", action=st.just({"query": "rain"})),
)


@given(st.lists(items, max_size=6), st.sampled_from([{}, {"instructions": "Be kind."}]))
def test_what_is_read_is_written_as_it_was(items: list[Any], beside: dict[str, Any]) -> None:
    request = {"input": [{"role": "user", "content": "Hi."}, *items], **beside}
    assert back_and_forth(RESPONSES, [request]) == [request]


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "metadata"}


def response(*output: dict[str, Any]) -> Response:
    """Return a response as the package makes it of what the endpoint sends."""
    return Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1.0,
            "model": "m",
            "output": list(output),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "instructions": "Be kind.",
        }
    )


SEARCH = {
    "type": "file_search_call",
    "id": "fs_1",
    "queries": ["rain"],
    "status": "completed",
    "results": [{"text": "Rain falls in Rome.", "file_id": "f", "score": 0.9}],
}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}'}
MCP = {"type": "mcp_call", "id": "mcp_1", "name": "find", "server_label": "s", "arguments": "{}", "output": "found"}


def answer(text: str) -> dict[str, Any]:
    content: list[Any] = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def test_a_response_of_the_package_is_read_as_it_writes_it_and_as_it_is() -> None:
    recorded_response = response(SEARCH, answer("One moment."), CALL, MCP)
    as_json = json.loads(recorded_response.model_dump_json())
    [row], loss = read_values(RESPONSES, [as_json])
    assert [plain(message) for message in row["messages"]] == [
        {"role": "system", "content": "Be kind."},
        {
            "role": "assistant",
            "content": "One moment.",
            "retrieval_context": ["Rain falls in Rome."],
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Rome"}'}},
                {"id": "mcp_1", "type": "function", "function": {"name": "find", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "content": "found", "tool_call_id": "mcp_1"},
    ]
    assert (row["id"], row["metadata"]["model"]) == ("resp_1", "m")
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "file_search_call")]
    live = conversation_of(recorded_response)
    assert live is not None
    assert [plain(message) for message in live["messages"]] == [plain(message) for message in row["messages"]]


def test_the_package_takes_what_is_written() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
    ours: list[dict[str, Any]] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "And here?"}, image]},
        {"role": "assistant", "content": "One moment.", "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "c1"},
        {"role": "assistant", "content": "It rains."},
    ]
    assert RESPONSES.write is not None
    _, loss = read_values(RESPONSES, [])
    [document] = RESPONSES.write([{"messages": ours}], loss)
    TypeAdapter[Any](list[ResponseInputItemParam]).validate_python(document["input"])
    assert [item.get("type", item.get("role")) for item in document["input"]] == [
        *("system", "user", "assistant", "function_call", "function_call_output", "assistant"),
    ]
    [row], _ = read_values(RESPONSES, [document])
    assert [plain(message) for message in row["messages"]] == ours
    assert loss.is_lossless


def test_a_question_that_is_a_text_stands_before_what_was_answered() -> None:
    [row], _ = read_values(RESPONSES, [{"input": "And in Rome?", "output": [answer("It rains.")]}])
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]


def test_a_broken_conversation_is_told_and_the_next_is_read() -> None:
    reasoning: dict[str, Any] = {"type": "reasoning", "summary": []}
    broken: list[Any] = [
        [reasoning],
        [answer("x"), {"type": "function_call", "call_id": 5}],
        [answer("x"), None],
        {"input": [{"role": 5}]},
        7,
    ]
    rows, loss = read_values(RESPONSES, [*broken, [answer("It rains.")]])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == len(broken)
