"""What is the answer? Every reader gives that of `answer_of_turn`, and every format the text that its parts make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.formats.translation import read_values
from vivavoce.conversations.format import format_named
from vivavoce.conversations.shapes import text_of
from vivavoce.grading.assertions import Scene
from vivavoce.grading.extractors import View, build_extractor
from vivavoce.messages import AnyMessage, read_messages, split_turns
from vivavoce.metrics import RefusalMetric
from vivavoce.metrics.transcript import transcript
from vivavoce.records.trajectory import answer_of_turn
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.transcript import ShownMessage, Writer
from vivavoce.report.transcript import words_of
from vivavoce.suites.experiment import run_suite

Json = dict[str, Any]
WORDS = ["I'm sorry, but I ca", "n't help ", "with that."]
WHOLE = "I'm sorry, but I can't help with that."
ASKED: Json = {"role": "user", "content": "Book a flight."}


def _scores(folder: Path, row: Json, graders: Json) -> Json:
    """Run a suite that replays a row, and return its scores by the names of its graders."""
    suite = {"name": "answers", "driver": "replay", "dataset": {"rows": [{"id": "a", **row}]}}
    suite |= {"graders": graders} if graders else {}
    path = folder / "suite.yaml"
    path.write_text(json.dumps(suite))
    [outcome] = run_suite(path, store=str(folder / "kept.db")).outcomes()
    return {name: score.value for name, score in outcome.scores.items()}


def _texts(**more: Any) -> list[Json]:
    return [{"type": "text", "text": words, **more} for words in WORDS]


def _in_lists(kind: str, content: Any) -> Json:
    return {"type": kind, "data": {"content": content, "type": kind}}


def _attributes(known: Json) -> list[Json]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in known.items()]


def _spans(known: Json) -> Json:
    span = {"traceId": "t", "spanId": "s", "name": "chat", "attributes": _attributes(known)}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


_OTEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Book a flight."}]}]),
    "gen_ai.output.messages": json.dumps(
        [{"role": "assistant", "parts": [{"type": "text", "content": words} for words in WORDS]}]
    ),
}
_OPENINFERENCE = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "Book a flight.",
    "llm.output_messages.0.message.role": "assistant",
    **{
        key: value
        for number, words in enumerate(WORDS)
        for key, value in (
            (f"llm.output_messages.0.message.contents.{number}.message_content.type", "text"),
            (f"llm.output_messages.0.message.contents.{number}.message_content.text", words),
        )
    },
}
_OUTPUT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": word} for word in WORDS]}
_PROMPT = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Book a flight."}]}
FORMATS: dict[str, tuple[str, Any]] = {
    "own": ("vivavoce", {"messages": [ASKED, {"role": "assistant", "content": _texts()}]}),
    "openai": ("openai", {"messages": [ASKED, {"role": "assistant", "content": _texts()}]}),
    "anthropic": (
        "anthropic",
        {"messages": [ASKED, {"role": "assistant", "content": _texts(citations=[{"cited_text": "x"}])}]},
    ),
    "langchain": ("langchain", {"messages": [_in_lists("human", "Book a flight."), _in_lists("ai", _texts())]}),
    "langchain, texts": ("langchain", {"messages": [_in_lists("human", "Book a flight."), _in_lists("ai", WORDS)]}),
    "gemini": (
        "gemini",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Book a flight."}]},
                {"role": "model", "parts": [{"text": words} for words in WORDS]},
            ]
        },
    ),
    "openai-responses": ("openai-responses", {"input": "Book a flight.", "output": [_OUTPUT]}),
    "vercel": (
        "vercel",
        {
            "messages": [
                {"role": "user", "parts": [{"type": "text", "text": "Book a flight."}]},
                {"role": "assistant", "parts": [{"type": "step-start"}, *_texts()]},
            ]
        },
    ),
    "pydantic-ai": (
        "pydantic-ai",
        {
            "messages": [
                _PROMPT,
                {"kind": "response", "parts": [{"part_kind": "text", "content": words} for words in WORDS]},
            ]
        },
    ),
    "otel": ("otel", _spans(_OTEL)),
    "openinference": ("otel", _spans(_OPENINFERENCE)),
    "letta": (
        "letta",
        {
            "messages": [
                {"message_type": "user_message", "content": "Book a flight."},
                {"message_type": "assistant_message", "content": _texts()},
            ]
        },
    ),
    "inspect": (
        "inspect",
        {
            "id": 1,
            "epoch": 1,
            "input": "Book a flight.",
            "target": "x",
            "messages": [{**ASKED, "source": "input"}, {"role": "assistant", "content": _texts()}],
            "scores": {},
        },
    ),
}


@pytest.mark.parametrize("case", FORMATS)
def test_the_text_parts_of_a_message_are_one_text_in_every_format_and_for_every_reader(
    case: str, tmp_path: Path
) -> None:
    name, record = FORMATS[case]
    [row], _ = read_values(format_named(name), [record])
    messages = read_messages(row["messages"])
    assert [message.text for message in messages] == ["Book a flight.", WHOLE]
    assert answer_of_turn(messages) == WHOLE
    assert RefusalMetric().evaluate(messages).raw == 1
    assert f"assistant: {json.dumps(WHOLE)}" in transcript(messages).text()
    assert words_of(messages[1]) == WHOLE
    [_, said] = [part for part in Writer(Register()).parts(messages, 0) if isinstance(part, ShownMessage)]
    assert len(said.segments) == 1
    known = {"messages": row["messages"], "expect": {"contains": "can't help with"}, "ground_truth": WHOLE}
    graders = {"same": {"kind": "function", "function": "exact_match"}}
    assert _scores(tmp_path, known, graders) == {"expect": 1, "same": 1}


def test_texts_of_a_response_of_pydantic_ai_that_do_not_follow_each_other_stay_apart() -> None:
    thinking = {"part_kind": "thinking", "content": "Hm."}
    parts = [{"part_kind": "text", "content": "He"}, {"part_kind": "text", "content": "llo."}, thinking]
    response = {"kind": "response", "parts": [*parts, {"part_kind": "text", "content": "And more."}]}
    [row], _ = read_values(format_named("pydantic-ai"), [{"messages": [_PROMPT, response]}])
    assert row["messages"][1]["content"] == "Hello.\n\nAnd more."


def test_messages_of_one_response_stay_messages() -> None:
    items = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": one}]} for one in "ab"
    ]
    [row], _ = read_values(format_named("openai-responses"), [{"input": "?", "output": items}])
    assert [message["content"] for message in row["messages"]] == ["?", "a", "b"]


@given(st.lists(st.text(), max_size=6))
def test_the_text_of_a_message_is_its_parts_concatenated(parts: list[str]) -> None:
    content = [{"type": "text", "text": text} for text in parts]
    [message] = read_messages([{"role": "assistant", "content": content}])
    assert message.text == text_of(content) == "".join(parts)


STEPS = st.lists(st.sampled_from(["user", "says", "silent", "calls", "says and calls", "refuses"]), max_size=10)


def _conversation(steps: list[str]) -> list[AnyMessage]:
    rows: list[Json] = [{"role": "user", "content": "first"}]
    for number, step in enumerate(steps):
        words = f"words {number}"
        call: Json = {"tool_calls": [{"id": str(number), "name": "f", "arguments": {}}]}
        rows.append(
            {
                "user": {"role": "user", "content": "next"},
                "says": {"role": "assistant", "content": words},
                "silent": {"role": "assistant", "content": ""},
                "calls": {"role": "assistant", "content": None, **call},
                "says and calls": {"role": "assistant", "content": words, **call},
                "refuses": {"role": "assistant", "content": [{"type": "refusal", "refusal": words}]},
            }[step]
        )
    return read_messages(rows)


def _expected(steps: list[str]) -> str:
    for number in range(len(steps) - 1, -1, -1):
        match steps[number]:
            case "user" | "silent":
                return ""
            case "calls":
                continue
            case _:
                return f"words {number}"
    return ""


@given(STEPS)
def test_every_reader_takes_the_answer_of_the_last_turn(steps: list[str]) -> None:
    messages = _conversation(steps)
    answer = _expected(steps)
    view = View(split_turns(messages)[1])
    assert answer_of_turn(messages) == Scene(view).answer == answer
    assert build_extractor("last_assistant", {}, Path())(view) == answer
    last = len(steps) - 1 - steps[::-1].index("user") if "user" in steps else -1
    said = [f"words {number}" for number in range(last + 1, len(steps)) if steps[number] not in ("silent", "calls")]
    newest = said[-1] if said else ""
    assert build_extractor("pattern", {"pattern": "words [0-9]+"}, Path())(view) == newest
    assert build_extractor("after_marker", {"marker": "words", "include_marker": True}, Path())(view) == newest


SILENT: list[Json] = [
    {"role": "user", "content": "The capital of Germany?"},
    {"role": "assistant", "content": "Berlin, 42 km"},
    {"role": "user", "content": "And now?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "f", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "x"},
]


@pytest.mark.parametrize(
    "expect",
    [
        {"equals": "Berlin, 42 km"},
        {"numeric": 42},
        {"one_of": ["Berlin, 42 km"]},
        {"json_schema": {"type": ["string", "number"]}},
        {"not": {"equals": "Paris"}},
        {"not": {"numeric": 7}},
    ],
)
def test_an_assertion_about_the_answer_never_reaches_back(expect: Json, tmp_path: Path) -> None:
    assert _scores(tmp_path, {"messages": SILENT, "expect": expect}, {}) == {"expect": 0}


@pytest.mark.parametrize(
    ("extractor", "config"),
    [
        ("last_assistant", {}),
        ("pattern", {"pattern": "Berlin"}),
        ("after_marker", {"marker": "Ber", "include_marker": True}),
    ],
)
def test_an_extractor_never_reaches_back(extractor: str, config: Json, tmp_path: Path) -> None:
    grader = {"kind": "function", "function": "contains", "extractor": extractor, "extractor_config": config}
    assert _scores(tmp_path, {"messages": SILENT, "ground_truth": "Berlin"}, {"ok": grader}) == {"ok": 0}
