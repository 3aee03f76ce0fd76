"""Exports of Langfuse, with rows made by its own package, become conversations."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langfuse.api.commons.types import Score
from langfuse.api.commons.types.observation_v2 import ObservationV2
from langfuse.api.core.pydantic_utilities import parse_obj_as

from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.conversations.shapes import text_of
from vivavoce.features.formats.langfuse import FORMAT

Json = dict[str, Any]
START = datetime(2026, 11, 22, 10, tzinfo=UTC)
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1042}'}}
QUESTION = {"role": "user", "content": "Where is 1042?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
GOT = {"role": "tool", "tool_call_id": "c1", "content": "sent"}
ANSWER = {"role": "assistant", "content": "It was sent."}
CONTENTS = ["Where is 1042?", None, "sent", "It was sent."]

BLOCKS = [
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "sent"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {"n": 1042}}]},
]
PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "Where is 1042?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "find", "arguments": {"n": 1042}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sent"}]},
]


def write_fields(kind: Any, fields: Json) -> Json:
    """Return an answer of Langfuse's interface as its package reads it and writes it again."""
    read_in: Any = parse_obj_as(kind, fields)
    return json.loads(read_in.json())


def observation(identity: str, kind: str, at: int, inputs: Any, outputs: Any, **more: Any) -> Json:
    fields = {
        "id": identity,
        "traceId": "t1",
        "startTime": (START + timedelta(seconds=at)).isoformat(),
        "endTime": (START + timedelta(seconds=at + 1)).isoformat(),
        "projectId": "p",
        "parentObservationId": more.pop("parent", None),
        "type": kind,
        "input": inputs,
        "output": outputs,
        **more,
    }
    return write_fields(ObservationV2, fields)


def session_of(kind: str = "GENERATION") -> list[Json]:
    known = {"sessionId": "talk", "userId": "ada", "tags": ["parcels"]}
    usage = {"usageDetails": {"input": 3, "output": 4}, "costDetails": {"total": 0.5}, "model": "gpt"}
    return [
        observation(
            "root", "AGENT", 0, {"args": ["Where is 1042?"], "kwargs": {}}, "It was sent.", name="desk", **known
        ),
        observation("a", kind, 1, [QUESTION], CALLED, parent="root", **known, **usage),
        observation("b", "TOOL", 3, {"n": 1042}, "sent", parent="root", name="find", **known),
        observation("r", "RETRIEVER", 4, "1042", ["Parcels leave daily."], parent="root", **known),
        observation("c", kind, 5, [QUESTION, CALLED, GOT], ANSWER, parent="root", **known, **usage),
    ]


def score(kind: str, **fields: Any) -> Json:
    times = dict.fromkeys(("timestamp", "createdAt", "updatedAt"), START.isoformat())
    known = {"id": fields["name"], "traceId": "t1", "source": "API", "environment": "default", **times}
    return write_fields(Score, {**known, **fields, "dataType": kind})


SCORES = [
    score("NUMERIC", name="warmth", value=0.5, comment="It was short."),
    score("BOOLEAN", name="polite", value=1, stringValue="True"),
    score("CATEGORICAL", name="tone", value=2, stringValue="neutral"),
]


def contents(row: Json) -> list[Any]:
    return [message["content"] for message in row["messages"]]


def check(row: Json, loss: Loss) -> None:
    assert contents(row) == CONTENTS
    assert row["messages"][1]["tool_calls"] == [CALL]
    assert row["messages"][3]["retrieval_context"] == ["Parcels leave daily."]
    assert (row["id"], row["tags"], row["metadata"]["user"]) == ("talk", ["parcels"], "ada")
    assert row["metadata"]["usage"] == {"input_tokens": 6, "output_tokens": 8}
    assert row["metadata"]["cost"] == 1
    assert loss.is_lossless, list(loss.lines())


def test_rows_of_its_interface_are_read_in_every_file(tmp_path: Path) -> None:
    rows = session_of()
    snakes = [
        {"".join(f"_{c.lower()}" if c.isupper() else c for c in key): value for key, value in row.items()}
        for row in rows
    ]
    page, lines, export = (tmp_path / name for name in ("page.json", "rows.jsonl", "export.jsonl"))
    page.write_text(json.dumps({"data": rows, "meta": {"cursor": None}}))
    lines.write_text("\n".join(map(json.dumps, reversed(rows))))
    export.write_text("\n".join(map(json.dumps, snakes)))
    for file in (page, lines, export):
        assert detect(file) is FORMAT, file
        loss = Loss()
        [(_, row)] = read(file, FORMAT, loss)
        check(row, loss)


def trace(identity: str = "t1", **more: Any) -> Json:
    known = {
        "id": identity,
        "timestamp": "2026-11-22T10:00:00Z",
        "name": "desk",
        "bookmarked": False,
        "tags": ["parcels"],
    }
    return {**known, "sessionId": "talk", "userId": "ada", "metadata": {"shop": 5}, **more}


def test_files_of_its_pages_are_read(tmp_path: Path) -> None:
    rows = [{**row, "input": json.dumps(row["input"]), "output": json.dumps(row["output"])} for row in session_of()]
    light = [{**row, "input": None, "output": None} for row in rows]
    files = {
        "trace-t1.json": {"trace": trace(observations=light, scores=SCORES), "observations": rows, "scores": SCORES},
        "api.json": trace(observations=session_of(), scores=SCORES),
        "session-talk.json": {"id": "talk", "traces": [trace(observations=session_of(), scores=SCORES)]},
    }
    for name, document in files.items():
        file = tmp_path / name
        file.write_text(json.dumps(document))
        assert detect(file) is FORMAT, name
        loss = Loss()
        [(_, row)] = read(file, FORMAT, loss)
        check(row, loss)
        assert row["labels"] == {"warmth": 0.5, "polite": True, "tone": "neutral"}
        assert row["metadata"]["scores"]["warmth"] == {"reason": "It was short.", "by": "API"}
        assert row["metadata"]["shop"] == 5


def test_traces_of_a_session_follow_each_other() -> None:
    first = trace("t1", input={"messages": [QUESTION]}, output="It was sent.", observations=[])
    second = trace("t2", input="Thanks.", output={"role": "assistant", "content": "Bye."}, observations=["o1"])
    [row], loss = read_values(FORMAT, [{**second, "timestamp": "2026-11-22T11:00:00Z"}, first])
    assert contents(row) == ["Where is 1042?", "It was sent.", "Thanks.", "Bye."]
    assert loss.is_lossless


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([QUESTION, CALLED, GOT], ANSWER),
        ({"messages": [QUESTION, CALLED, GOT], "tools": []}, {"choices": [{"message": ANSWER}]}),
        (json.dumps([QUESTION, CALLED, GOT]), "It was sent."),
        ([QUESTION, *reversed(BLOCKS)], [{"role": "assistant", "content": [{"type": "text", "text": "It was sent."}]}]),
        (PARTS, [{"role": "assistant", "parts": [{"type": "text", "content": "It was sent."}]}]),
    ],
)
def test_what_was_logged_may_have_any_format(inputs: Any, outputs: Any) -> None:
    [row], loss = read_values(FORMAT, [observation("a", "GENERATION", 0, inputs, outputs)])
    assert [text_of(content) if isinstance(content, list) else content for content in contents(row)] == CONTENTS
    assert row["messages"][1]["tool_calls"] == [CALL]
    assert loss.entries() == []


def test_a_file_without_inputs_and_outputs_says_so() -> None:
    bare = [{**row, "input": None, "output": None} for row in session_of()]
    rows, loss = read_values(FORMAT, [{"trace": trace(), "observations": bare}, {"id": 5}, 7])
    assert rows == []
    assert [entry.what for entry in loss.entries()] == [
        "a record is neither a trace nor an observation nor a score of Langfuse",
        "a record is not an object of Langfuse",
        "a trace has no messages: their text was not recorded",
    ]


def _inside(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["messages", "role", "content", "parts", "args", "tool_calls", "type"])
    return st.lists(item, max_size=2) | st.dictionaries(keys, item)


odd: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=3) | st.sampled_from(["[]", "1970"]),
    _inside,
    max_leaves=6,
)
KEYS = (
    "startTime",
    "endTime",
    "input",
    "output",
    "usageDetails",
    "costDetails",
    "tags",
    "metadata",
    "sessionId",
    "name",
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from("abc") | odd, "traceId": st.sampled_from(["t1", "a"]) | odd},
            optional={
                "type": st.sampled_from(["GENERATION", "SPAN", "TOOL", "RETRIEVER"]) | odd,
                "parentObservationId": st.sampled_from("abc"),
                **dict.fromkeys((*KEYS, "trace", "observations", "scores", "dataType", "value"), odd),
            },
        )
        | odd,
        max_size=4,
    )
)
def test_no_record_breaks_the_reader(records: list[Any]) -> None:
    read_values(FORMAT, records)
