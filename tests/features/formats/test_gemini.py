"""Gemini's contents become our messages and come back as they were."""

from __future__ import annotations

import json
from typing import Any

from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from features.formats.translation import back_and_forth, read_values
from vivavoce.conversations.objects import conversation_of
from vivavoce.features.formats.gemini import FORMAT

texts = st.text()
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda item: st.lists(item, max_size=2)
)
objects = st.dictionaries(texts, json_values, max_size=2)
kinds = st.sampled_from(["image/png", "audio/wav"])
names = st.sampled_from(["weather", "time"])
ID: dict[str, st.SearchStrategy[Any]] = {"id": texts}
responses = objects | st.fixed_dictionaries({"result": texts}) | st.fixed_dictionaries({"output": texts})


def part(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(fields, optional={"thoughtSignature": texts})


def call_parts(key: str) -> st.SearchStrategy[Any]:
    return part(**{key: st.fixed_dictionaries({"name": names, "args": objects}, optional=ID)})


def result_parts(key: str) -> st.SearchStrategy[Any]:
    return part(**{key: st.fixed_dictionaries({"name": names, "response": responses}, optional=ID)})


text_parts = st.one_of(
    part(text=texts),
    part(
        inlineData=st.sampled_from([{"mimeType": "image/png", "data": "aGk="}, {"mimeType": "audio/wav", "data": "a"}])
    ),
    part(inline_data=st.just({"mime_type": "image/png", "data": "aGk="})),
    part(fileData=st.sampled_from([{"fileUri": "gs://a", "mimeType": "image/png"}, {"fileUri": "gs://a"}])),
    result_parts("functionResponse"),
    result_parts("function_response"),
)
answer_contents = st.one_of(
    part(text=texts),
    part(text=texts, thought=st.just(True)),
    part(executableCode=st.just({"language": "PYTHON", "code": "1"})),
    call_parts("functionCall"),
    call_parts("function_call"),
)
contents = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "function"]), "parts": st.lists(text_parts, max_size=4)}),
    st.fixed_dictionaries({"parts": st.lists(text_parts, max_size=2)}),
    st.fixed_dictionaries({"role": st.just("model"), "parts": st.lists(answer_contents, max_size=4)}),
)
SYSTEM: list[dict[str, Any]] = [
    {},
    {"systemInstruction": {"parts": [{"text": "Be kind."}]}},
    {"system_instruction": "Be kind."},
    {"systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}, {"text": "Be brief."}]}},
]


@given(st.lists(contents, min_size=1, max_size=4), st.sampled_from(SYSTEM))
def test_what_is_read_is_written_as_it_was(contents_list: list[Any], system: dict[str, Any]) -> None:
    assert FORMAT.write is not None
    request = {"contents": contents_list, **system}
    rows, loss = read_values(FORMAT, [request])
    assert list(FORMAT.write(json.loads(json.dumps(rows)), loss)) == [request]
    assert {entry.kind for entry in loss.entries()} <= {"aside", "guessed", "orphan_call", "orphan_result"}


def plain(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "metadata"}


def test_results_without_ids_answer_the_calls_of_their_names_in_order() -> None:
    def call(city: str, name: str = "weather") -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": {"city": city}}}

    def result(sky: str, name: str = "weather") -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"result": sky}}}

    conversation: list[Any] = [
        {"role": "user", "parts": [{"text": "And in Rome and Oslo?"}]},
        {"role": "model", "parts": [call("Rome"), call("Rome", "time"), call("Oslo")]},
        {"role": "user", "parts": [result("noon", "time"), result("rain"), result("snow"), result("x", "other")]},
    ]
    [row], loss = read_values(FORMAT, [conversation])
    ids = [call["id"] for call in row["messages"][1]["tool_calls"]]
    assert [(message["tool_call_id"], message["content"]) for message in row["messages"][2:]] == [
        *((ids[1], "noon"), (ids[0], "rain"), (ids[2], "snow"), (None, "x")),
    ]
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("guessed", "which of several same-name calls a result answers"),
        ("orphan_result", "other"),
    ]
    assert back_and_forth(FORMAT, [conversation[:1]]) == [{"contents": conversation[:1]}]


CALL = types.FunctionCall(id="c1", name="weather", args={"city": "Rome"})
CHAT = [
    types.Content(role="user", parts=[types.Part(text="And in Rome?")]),
    types.Content(role="model", parts=[types.Part(text="hm", thought=True), types.Part(function_call=CALL)]),
    types.Content(
        role="user",
        parts=[
            types.Part(function_response=types.FunctionResponse(id="c1", name="weather", response={"sky": "rain"})),
            types.Part(inline_data=types.Blob(mime_type="image/png", data=b"hi")),
        ],
    ),
    types.Content(role="model", parts=[types.Part(text="It rains.")]),
]
OURS: list[dict[str, Any]] = [
    {"role": "user", "content": "And in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
        ],
    },
    {"role": "tool", "content": '{"sky": "rain"}', "name": "weather", "tool_call_id": "c1"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
    {"role": "assistant", "content": "It rains."},
]


def test_what_the_package_writes_is_read_in_each_spelling() -> None:
    for bare, camel in ((True, False), (True, True), (False, False)):
        dumped = [json.loads(content.model_dump_json(exclude_none=bare, by_alias=camel)) for content in CHAT]
        [row], loss = read_values(FORMAT, [dumped])
        assert [plain(message) for message in row["messages"]] == OURS
        assert [(entry.kind, entry.what) for entry in loss.entries()] == [("aside", "thought")]
        assert FORMAT.write is not None
        assert list(FORMAT.write([row], loss)) == [{"contents": dumped}]
    live = conversation_of(CHAT)
    assert live is not None
    assert [plain(message) for message in live["messages"]] == OURS


def test_the_package_takes_what_is_written() -> None:
    assert FORMAT.write is not None
    _, loss = read_values(FORMAT, [])
    [document] = FORMAT.write([{"messages": [{"role": "system", "content": "Be kind."}, *OURS]}], loss)
    assert types.Content.model_validate(document["systemInstruction"]).parts == [types.Part(text="Be kind.")]
    contents = [types.Content.model_validate(content) for content in document["contents"]]
    assert [content.role for content in contents] == ["user", "model", "user", "model"]
    assert contents[1].parts == [types.Part(function_call=CALL)]
    assert contents[2].parts == CHAT[2].parts
    assert loss.is_lossless


def test_a_broken_conversation_is_told_and_the_next_is_read() -> None:
    good = {"role": "user", "parts": [{"text": "Hi."}]}
    broken: list[Any] = [[good, None], [{"role": "user", "parts": [5]}], [{"role": "x", "parts": []}], 7]
    rows, loss = read_values(FORMAT, [*broken, [good]])
    assert len(rows) == 1
    assert sum(entry.count for entry in loss.entries() if entry.kind == "broken") == len(broken)
