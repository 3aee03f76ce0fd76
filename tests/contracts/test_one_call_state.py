"""Did this call happen, and did it succeed? Every reader gives the answer of `records.call_states`, for every format.

The words of each result say nothing, so that only the field of the format can tell.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.formats.translation import read_values
from vivavoce.comparing.call_outcomes import words_say_failed
from vivavoce.conversations.format import Loss, all_formats, format_named
from vivavoce.features.formats.conversion import texts
from vivavoce.grading.assertions import Scene
from vivavoce.grading.calls import Calls
from vivavoce.grading.extractors import View, build_extractor
from vivavoce.langchain_messages import as_row
from vivavoce.messages import AnyMessage, ToolMessage, dump_messages, load_messages, read_messages
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.exact.tool_calls import select_calls
from vivavoce.metrics.ledger import ledger
from vivavoce.metrics.transcript import transcript
from vivavoce.records.agents import Agents
from vivavoce.records.trajectory import CallState, call_records, error_of, made_calls, tool_results
from vivavoce.report.html.evidence import Register
from vivavoce.report.html.transcript import Called, Writer
from vivavoce.tools.recordings import recorded_call

Json = dict[str, Any]
TOOL = "transfer_to_refunds"
SAID = "card declined"


def _own(**fields: Any) -> list[Any]:
    call: Any = {"id": "c1", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
    return [
        {
            "messages": [
                {"role": "user", "content": "Refund?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": SAID, **fields},
                {"role": "assistant", "content": "Done."},
            ]
        }
    ]


def _anthropic(**fields: Any) -> list[Any]:
    result: Any = {"type": "tool_result", "tool_use_id": "c1", "content": SAID, **fields}
    return [
        {
            "messages": [
                {"role": "user", "content": "Refund?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": TOOL, "input": {}}]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": "Done."},
            ]
        }
    ]


def _langchain(content: Any = SAID, **fields: Any) -> list[Any]:
    call: Any = {"name": TOOL, "args": {}, "id": "c1", "type": "tool_call"}
    return [
        {
            "messages": [
                {"type": "human", "data": {"content": "Refund?", "type": "human"}},
                {"type": "ai", "data": {"content": "", "type": "ai", "tool_calls": [call]}},
                {"type": "tool", "data": {"content": content, "type": "tool", "tool_call_id": "c1", **fields}},
                {"type": "ai", "data": {"content": "Done.", "type": "ai"}},
            ]
        }
    ]


def _vercel(**part: Any) -> list[Any]:
    call: Any = {"type": f"tool-{TOOL}", "toolCallId": "c1", "input": {}, **part}
    return [
        {
            "messages": [
                {"role": "user", "parts": [{"type": "text", "text": "Refund?"}]},
                {"role": "assistant", "parts": [{"type": "step-start"}, call, {"type": "text", "text": "Done."}]},
            ]
        }
    ]


def _pydantic(**part: Any) -> list[Any]:
    call: Any = {"part_kind": "tool-call", "tool_name": TOOL, "args": {}, "tool_call_id": "c1"}
    result: Any = {"tool_name": TOOL, "content": SAID, "tool_call_id": "c1", **part}
    return [
        {
            "messages": [
                {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Refund?"}]},
                {"kind": "response", "parts": [call]},
                {"kind": "request", "parts": [result]},
                {"kind": "response", "parts": [{"part_kind": "text", "content": "Done."}]},
            ]
        }
    ]


def _responses(*items: Json) -> list[Any]:
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    return [{"input": "Refund?", "output": [*items, done]}]


def _function(**fields: Any) -> list[Any]:
    call: Any = {"type": "function_call", "call_id": "c1", "name": TOOL, "arguments": "{}"}
    return _responses(call, {"type": "function_call_output", "call_id": "c1", "output": SAID, **fields})


def _gemini(response: Json) -> list[Any]:
    return [
        {
            "contents": [
                {"role": "user", "parts": [{"text": "Refund?"}]},
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": TOOL, "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": TOOL, "response": response}}]},
                {"role": "model", "parts": [{"text": "Done."}]},
            ]
        }
    ]


def _adk(response: Json) -> list[Any]:
    authors = ("user", "agent", "agent", "agent")
    contents = _gemini(response)[0]["contents"]
    events: list[Json] = [
        {"author": author, "invocationId": "i", "content": content, "actions": {}}
        for author, content in zip(authors, contents, strict=True)
    ]
    return [{"events": events}]


def _autogen(*, is_error: object) -> list[Any]:
    result: Any = {"content": SAID, "name": TOOL, "call_id": "c1", "is_error": is_error}
    return [
        {
            "messages": [
                {"source": "user", "content": "Refund?", "type": "TextMessage"},
                {
                    "source": "bot",
                    "content": [{"id": "c1", "arguments": "{}", "name": TOOL}],
                    "type": "ToolCallRequestEvent",
                },
                {"source": "bot", "content": [result], "type": "ToolCallExecutionEvent"},
                {"source": "bot", "content": "Done.", "type": "TextMessage"},
            ]
        }
    ]


def _crewai(**event: Any) -> list[Any]:
    task = {"description": "Refund?", "raw": "Done.", "agent": "bot", "output_format": "raw"}
    return [
        {"type": "task_started", "event_id": "1", "source_fingerprint": None, "task_name": "Refund?"},
        {"event_id": "c1", "source_fingerprint": None, "tool_name": TOOL, "tool_args": {}, **event},
        {"type": "task_completed", "event_id": "2", "source_fingerprint": None, "output": task},
    ]


def _livekit(*, is_error: object) -> list[Any]:
    return [
        {
            "items": [
                {"type": "message", "role": "user", "content": ["Refund?"], "interrupted": False},
                {"type": "function_call", "call_id": "c1", "arguments": "{}", "name": TOOL},
                {"type": "function_call_output", "call_id": "c1", "name": TOOL, "output": SAID, "is_error": is_error},
                {"type": "message", "role": "assistant", "content": ["Done."], "interrupted": False},
            ]
        }
    ]


def _letta(*results: Json) -> list[Any]:
    call: Any = {"name": TOOL, "arguments": "{}", "tool_call_id": "c1"}
    return [
        {
            "messages": [
                {"message_type": "user_message", "content": "Refund?"},
                {"message_type": "tool_call_message", "tool_call": call},
                *results,
                {"message_type": "assistant_message", "content": "Done."},
            ]
        }
    ]


def _returned(status: str) -> Json:
    return {"message_type": "tool_return_message", "tool_call_id": "c1", "tool_return": SAID, "status": status}


_DENIED = {
    "message_type": "approval_response_message",
    "approvals": [{"type": "approval", "approve": False, "tool_call_id": "c1", "reason": "too expensive"}],
}


def _inspect(**fields: Any) -> list[Any]:
    call: Any = {"id": "c1", "function": TOOL, "arguments": {}, "type": "function"}
    messages: Any = [
        {"id": "a", "role": "user", "content": "Refund?", "source": "input"},
        {"id": "b", "role": "assistant", "content": "", "tool_calls": [call]},
        {"id": "c", "role": "tool", "content": SAID, "tool_call_id": "c1", "function": TOOL, **fields},
        {"id": "d", "role": "assistant", "content": "Done."},
    ]
    return [{"id": 1, "epoch": 1, "input": "Refund?", "target": "x", "messages": messages, "scores": {}}]


def _tau(*, error: bool) -> list[Any]:
    call: Any = {"id": "c1", "name": TOOL, "arguments": {}}
    said: Any = [
        {"role": "user", "content": "Refund?", "turn_idx": 0},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"id": "c1", "role": "tool", "content": SAID, "requestor": "assistant", "error": error},
        {"role": "assistant", "content": "Done."},
    ]
    run: Any = {"id": "s", "task_id": "1", "termination_reason": "user_stop", "reward_info": {}, "messages": said}
    return [run]


def _span(identity: str, at: int, known: Json, **more: Any) -> Json:
    attributes = [
        {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}
        for key, value in known.items()
    ]
    times = {"startTimeUnixNano": str(at * 10**9), "endTimeUnixNano": str((at + 1) * 10**9)}
    return {"traceId": "t", "spanId": identity, "name": TOOL, "attributes": attributes, **times, **more}


def _spans(first: Json, tool: Json, last: Json, status: Json) -> list[Any]:
    spans = [
        _span("a", 1_800_000_000, first),
        _span("b", 1_800_000_002, tool, **({"status": status} if status else {})),
        _span("c", 1_800_000_004, last),
    ]
    return [{"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]}]


def _otel(status: Json) -> list[Any]:
    def message(role: str, *parts: Json) -> Json:
        return {"role": role, "parts": list(parts)}

    asked = message("user", {"type": "text", "content": "Refund?"})
    called = message("assistant", {"type": "tool_call", "id": "c1", "name": TOOL, "arguments": {}})
    came = message("tool", {"type": "tool_call_response", "id": "c1", "response": SAID})
    said = message("assistant", {"type": "text", "content": "Done."})

    def chat(messages: list[Json], body: Json) -> Json:
        known = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages, "gen_ai.output.messages": [body]}
        return {"gen_ai.conversation.id": "k", **known}

    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": TOOL,
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": "{}",
        "gen_ai.tool.call.result": SAID,
    }
    return _spans(chat([asked], called), tool, chat([asked, called, came], said), status)


def _openinference(status: Json) -> list[Any]:
    call: Any = {
        "message.tool_calls.0.tool_call.id": "c1",
        "message.tool_calls.0.tool_call.function.name": TOOL,
        "message.tool_calls.0.tool_call.function.arguments": "{}",
    }

    def chat(messages: list[Json], body: Json) -> Json:
        known = {"openinference.span.kind": "LLM"}
        for side, items in (("input", messages), ("output", [body])):
            for number, item in enumerate(items):
                known |= {f"llm.{side}_messages.{number}.{key}": value for key, value in item.items()}
        return known

    asked = {"message.role": "user", "message.content": "Refund?"}
    called = {"message.role": "assistant", **call}
    came = {"message.role": "tool", "message.content": SAID, "message.tool_call_id": "c1"}
    said: Any = {"message.role": "assistant", "message.content": "Done."}
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": TOOL,
        "tool_call.id": "c1",
        "input.value": "{}",
        "output.value": SAID,
    }
    return _spans(chat([asked], called), tool, chat([asked, called, came], said), status)


_ERROR = {"code": 2, "message": "declined"}
_HOSTED = {"type": "mcp_call", "id": "c1", "name": TOOL, "arguments": "{}", "output": SAID}
_FAILED = {"message": SAID, "type": "timeout"}

FORMATS: dict[str, tuple[str, list[Any], CallState]] = {
    "own outcome": ("vivavoce", _own(outcome="failed"), "failed"),
    "own status": ("vivavoce", _own(status="error"), "failed"),
    "own is_error": ("vivavoce", _own(is_error=True), "failed"),
    "own metadata.failed": ("vivavoce", _own(metadata={"failed": True}), "failed"),
    "own metadata.status": ("vivavoce", _own(metadata={"status": "error"}), "failed"),
    "own metadata of a format": ("vivavoce", _own(metadata={"livekit": {"is_error": True}}), "failed"),
    "own metadata of LangChain": ("vivavoce", _own(metadata={"langchain": {"fields": {"status": "error"}}}), "failed"),
    "own refused": ("vivavoce", _own(outcome="refused"), "refused"),
    "own answered by the user": ("vivavoce", _own(metadata={"answered_by": "user", "failed": True}), "refused"),
    "own without a mark": ("vivavoce", _own(), "succeeded"),
    "anthropic is_error": ("anthropic", _anthropic(is_error=True), "failed"),
    "anthropic is_error, blocks": (
        "anthropic",
        _anthropic(is_error=True, content=[{"type": "text", "text": SAID}]),
        "failed",
    ),
    "anthropic": ("anthropic", _anthropic(), "succeeded"),
    "langchain status": ("langchain", _langchain(status="error"), "failed"),
    "langchain status, list": ("langchain", _langchain([{"type": "text", "text": SAID}], status="error"), "failed"),
    "langchain": ("langchain", _langchain(status="success"), "succeeded"),
    "vercel output-error": ("vercel", _vercel(state="output-error", errorText=SAID), "failed"),
    "vercel output-denied": (
        "vercel",
        _vercel(state="output-denied", approval={"id": "1", "approved": False}),
        "refused",
    ),
    "vercel approval denied": (
        "vercel",
        _vercel(state="approval-responded", approval={"id": "1", "approved": False, "reason": "no"}),
        "refused",
    ),
    "vercel output-available": ("vercel", _vercel(state="output-available", output=SAID), "succeeded"),
    "vercel input-available": ("vercel", _vercel(state="input-available"), "unanswered"),
    "pydantic-ai retry": ("pydantic-ai", _pydantic(part_kind="retry-prompt"), "failed"),
    "pydantic-ai failed": ("pydantic-ai", _pydantic(part_kind="tool-return", outcome="failed"), "failed"),
    "pydantic-ai denied": ("pydantic-ai", _pydantic(part_kind="tool-return", outcome="denied"), "refused"),
    "pydantic-ai": ("pydantic-ai", _pydantic(part_kind="tool-return", outcome="success"), "succeeded"),
    "responses incomplete": ("openai-responses", _function(status="incomplete"), "failed"),
    "responses": ("openai-responses", _function(status="completed"), "succeeded"),
    "responses mcp error": ("openai-responses", _responses({**_HOSTED, "error": SAID}), "failed"),
    "responses mcp": ("openai-responses", _responses(_HOSTED), "succeeded"),
    "responses mcp calling": (
        "openai-responses",
        _responses({**_HOSTED, "output": None, "status": "calling"}),
        "unanswered",
    ),
    "responses mcp in progress": (
        "openai-responses",
        _responses({**_HOSTED, "output": None, "status": "in_progress"}),
        "unanswered",
    ),
    "responses mcp incomplete": (
        "openai-responses",
        _responses({**_HOSTED, "output": None, "status": "incomplete"}),
        "failed",
    ),
    "responses mcp without output": (
        "openai-responses",
        _responses({**_HOSTED, "output": None, "status": "completed"}),
        "succeeded",
    ),
    "responses call only": (
        "openai-responses",
        _responses({"type": "function_call", "call_id": "c1", "name": TOOL, "arguments": "{}"}),
        "unanswered",
    ),
    "gemini error": ("gemini", _gemini({"error": SAID}), "failed"),
    "gemini": ("gemini", _gemini({"result": SAID}), "succeeded"),
    "google-adk error": ("google-adk", _adk({"error": SAID, "code": 7}), "failed"),
    "autogen is_error": ("autogen", _autogen(is_error=True), "failed"),
    "autogen is_error, text": ("autogen", _autogen(is_error="True"), "failed"),
    "autogen is_error false, text": ("autogen", _autogen(is_error="false"), "succeeded"),
    "autogen": ("autogen", _autogen(is_error=False), "succeeded"),
    "crewai error": ("crewai", _crewai(type="tool_usage_error", error=SAID), "failed"),
    "crewai": ("crewai", _crewai(type="tool_usage_finished", output=SAID), "succeeded"),
    "livekit is_error": ("livekit", _livekit(is_error=True), "failed"),
    "livekit is_error, number": ("livekit", _livekit(is_error=1), "failed"),
    "livekit": ("livekit", _livekit(is_error=False), "succeeded"),
    "letta status": ("letta", _letta(_returned("error")), "failed"),
    "letta denied": ("letta", _letta(_DENIED), "refused"),
    "letta denied and answered": ("letta", _letta(_DENIED, _returned("error")), "refused"),
    "letta": ("letta", _letta(_returned("success")), "succeeded"),
    "inspect error": ("inspect", _inspect(error=_FAILED), "failed"),
    "inspect not approved": ("inspect", _inspect(error={"message": SAID, "type": "approval"}), "refused"),
    "inspect": ("inspect", _inspect(), "succeeded"),
    "tau error": ("tau", _tau(error=True), "failed"),
    "tau": ("tau", _tau(error=False), "succeeded"),
    "otel error": ("otel", _otel(_ERROR), "failed"),
    "otel": ("otel", _otel({}), "succeeded"),
    "openinference error": ("otel", _openinference(_ERROR), "failed"),
    "openinference": ("otel", _openinference({}), "succeeded"),
}


def _read(case: str) -> tuple[list[AnyMessage], CallState]:
    name, records, state = FORMATS[case]
    [row], _ = read_values(format_named(name), records)
    return read_messages(row["messages"]), state


@pytest.mark.parametrize("case", FORMATS)
def test_each_format_gives_a_call_the_state_that_its_field_states(case: str) -> None:
    messages, state = _read(case)
    [record] = call_records(messages)
    assert (record.call.name, record.state) == (TOOL, state)
    assert record.result is None or not words_say_failed(record.result.text) or "gemini" in case or "adk" in case


@pytest.mark.parametrize("case", FORMATS)
def test_every_reader_gives_the_same_answer(case: str) -> None:
    messages, state = _read(case)
    has_failed, was_made = state == "failed", state != "refused"
    [record] = call_records(messages)

    scene = Scene(View([messages]))
    for outcome in ("succeeded", "failed"):
        assert Calls.model_validate({"calls": TOOL, "outcome": outcome}).held(scene).passed is (state == outcome)
        rule = RuleMetric(each={"assistant_says": "Done"}, only_after=[{"call": TOOL, "outcome": outcome}])
        assert rule.evaluate(messages).passed is (state == outcome)
    assert Calls.model_validate({"calls": TOOL}).held(scene).passed is was_made
    assert (
        RuleMetric(each={"assistant_says": "Done"}, only_after=[{"call": TOOL}]).evaluate(messages).passed is was_made
    )

    [act] = [act for act in ledger([*messages]) if act.call.name == TOOL] or [None]
    assert act is None or (act.state, act.failed) == (state, state in ("failed", "refused"))
    [called] = [part for part in Writer(Register()).parts(messages, 0) if isinstance(part, Called)]
    assert called.failed is has_failed
    assert ("refused" in called.brief) is (not was_made)
    assert bool(made_calls(messages)) is bool(select_calls(messages)) is was_made
    handed_over = [handoff for handoff in Agents(messages, ["refunds"]).handoffs() if handoff.how == "call"]
    assert bool(handed_over) is (state not in ("failed", "refused"))

    lines = transcript(messages).text()
    for word in ("failed", "refused"):
        is_told = state == word and record.result is not None and not words_say_failed(record.result.text)
        assert (f"result c0 {word}: " in lines) is is_told
    if record.result is not None:
        assert (error_of(record.result) is not None) is has_failed
        assert (recorded_call("s", record.call, record.result) is not None) is was_made
        output = build_extractor("tool_output", {"tool_name": TOOL}, Path())(View([messages]))
        assert (output == "") is (not was_made)


@pytest.mark.parametrize("case", FORMATS)
def test_a_stored_conversation_keeps_the_state(case: str) -> None:
    messages, state = _read(case)
    [record] = call_records(load_messages(dump_messages(messages)))
    assert record.state == state


WRITERS = [
    all_format.name
    for all_format in all_formats()
    if all_format.write and all_format.read and all_format.keeps_outcomes
]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("case", ["own outcome", "own refused", "own without a mark", "anthropic is_error"])
def test_a_written_conversation_keeps_whether_a_call_succeeded(name: str, case: str) -> None:
    messages, state = _read(case)
    format_, loss = format_named(name), Loss()
    rows = [{"id": "a", "messages": [message.to_dict() for message in messages]}]
    written = [json.loads(text) for text in texts(rows, format_, loss)]
    [row], _ = read_values(format_, written)
    [record] = call_records(read_messages(row["messages"]))
    told = {entry.what for entry in loss.entries()}
    assert (record.state == "succeeded") is (state == "succeeded") or "'outcome' of a message" in told


def test_a_format_without_such_a_field_says_that_the_outcome_is_lost() -> None:
    messages, _ = _read("own outcome")
    for format_ in all_formats():
        if format_.write is None or format_.keeps_outcomes or format_.name == "vivavoce":
            continue
        loss = Loss()
        list(texts([{"id": "a", "messages": [message.to_dict() for message in messages]}], format_, loss))
        assert not loss.is_lossless, format_.name


def test_an_object_of_langchain_with_an_error_is_a_failed_call() -> None:
    class Result:
        type, content, name, tool_call_id, status = "tool", SAID, TOOL, "c1", "error"

    [message] = read_messages([as_row(Result()) or {}])
    assert isinstance(message, ToolMessage)
    assert message.stated_outcome == "failed"


@pytest.mark.parametrize(
    ("fields", "text", "state"),
    [
        ({}, "card declined", "succeeded"),
        ({}, "Error: card declined", "failed"),
        ({}, '{"error": "card declined"}', "failed"),
        ({}, '{"status": "failed"}', "failed"),
        ({}, '{"error": null}', "succeeded"),
        ({}, "HTTP 500 Internal Server Error", "succeeded"),
        ({"is_error": False}, "Error rates fell by 3%", "succeeded"),
        ({"outcome": "succeeded"}, "Error rates fell by 3%", "succeeded"),
        ({"status": "success"}, "Error: card declined", "failed"),
        ({"status": "completed"}, "card declined", "succeeded"),
        ({"status": 200}, "card declined", "succeeded"),
        ({"outcome": "success", "is_error": True}, "x", "succeeded"),
        ({"isError": True}, "x", "failed"),
        ({"status": "incomplete"}, "x", "failed"),
        ({"status": "denied"}, "x", "refused"),
        ({"metadata": {"status": "denied"}}, "x", "refused"),
        ({"metadata": {"claim": {"status": "denied"}}}, "x", "succeeded"),
        ({"metadata": {"claim": {"status": "error"}}}, "x", "failed"),
        ({"is_error": "true"}, "x", "failed"),
        ({"is_error": 1}, "x", "failed"),
        ({"is_error": 1.0}, "x", "failed"),
        ({"is_error": "1"}, "x", "failed"),
        ({"is_error": "YES"}, "x", "failed"),
        ({"isError": "True"}, "x", "failed"),
        ({"isError": " true "}, "x", "failed"),
        ({"metadata": {"is_error": "True"}}, "x", "failed"),
        ({"metadata": {"livekit": {"is_error": 1}}}, "x", "failed"),
        ({"metadata": {"failed": "true"}}, "x", "failed"),
        ({"metadata": {"tests": {"failed": 1, "passed": 8}}}, "x", "succeeded"),
        ({"is_error": "false"}, "x", "succeeded"),
        ({"is_error": 0}, "x", "succeeded"),
        ({"is_error": "false"}, "Error: x", "failed"),
        ({"is_error": 0}, "Error: x", "failed"),
        ({"status": "Error"}, "x", "failed"),
        ({"status": "FAILED"}, "x", "failed"),
        ({"status": "Incomplete"}, "x", "failed"),
        ({"status": "Denied"}, "x", "refused"),
        ({"metadata": {"claim": {"status": "ERROR"}}}, "x", "failed"),
        ({"outcome": "success"}, "Error: x", "succeeded"),
        ({"outcome": "Success"}, "Error: x", "succeeded"),
        ({"outcome": "Failure"}, "x", "failed"),
        ({}, '{"success": "false"}', "failed"),
        ({}, '{"Success": "False", "data": []}', "failed"),
        ({}, '{"ok": 0}', "failed"),
        ({}, '{"success": "true"}', "succeeded"),
        ({}, '{"success": null}', "succeeded"),
        ({}, '{"is_error": "true"}', "failed"),
        ({}, '{"isError": 1}', "failed"),
        ({}, '{"isError": "false"}', "succeeded"),
        ({}, '{"status": "Error"}', "failed"),
        ({}, '{"error": "x", "error": null}', "failed"),
        ({}, '{"data": {"error": "x"}}', "succeeded"),
        ({"error": "no funds"}, "x", "failed"),
        ({"error": True}, "x", "failed"),
        ({"error": {"code": 5}}, "x", "failed"),
        ({"error": None}, "x", "succeeded"),
        ({"error": "null"}, "x", "succeeded"),
        ({"error": ""}, "Error: x", "failed"),
        ({"error_message": "no funds"}, "x", "failed"),
        ({"success": False}, "x", "failed"),
        ({"success": "No"}, "x", "failed"),
        ({"ok": False}, "x", "failed"),
        ({"ok": 0}, "x", "failed"),
        ({"ok": True}, "Error: x", "failed"),
        ({"metadata": {"ok": False}}, "x", "failed"),
        ({"metadata": {"kept": {"error": "no funds"}}}, "x", "failed"),
        ({"is_error": False, "error": "no funds"}, "x", "failed"),
        ({"outcome": "succeeded", "error": "no funds"}, "x", "succeeded"),
        ({"status": "errored"}, "x", "failed"),
        ({}, '[{"type": "text", "text": "Error: x"}]', "failed"),
        ({}, '[{"type": "text", "text": "Err"}, {"type": "text", "text": "or: x"}]', "failed"),
        ({}, '{"content": [{"type": "text", "text": "Error: x"}], "isError": false}', "failed"),
        ({}, '{"type": "text", "text": "Error: x"}', "failed"),
        ({}, '[{"type": "text", "text": "All errors are gone"}]', "succeeded"),
        ({}, '```json\n{"error": "x"}\n```', "failed"),
        ({}, '```json {"error": "x"}```', "failed"),
        ({}, "~~~\nError: x\n~~~", "failed"),
        ({}, '```json\n{"ok": true}\n```', "succeeded"),
        ({}, '{"result": "Error: x"}', "failed"),
        ({}, '{"result": {"success": false}}', "failed"),
        ({}, '{"result": "Error: x", "rows": 3}', "succeeded"),
        ({}, '[{"error": "x"}]', "failed"),
        ({}, '[{"error": "x"}, {"ok": true}]', "succeeded"),
        ({}, '{"error": "x"} Try again.', "failed"),
        ({}, "{'order': 5, 'error': 'x'}", "failed"),
        ({}, "{'ok': False}", "failed"),
        ({}, "{'ok': True, 'error': None}", "succeeded"),
    ],
)
def test_a_field_decides_and_words_only_without_one(fields: Json, text: str, state: CallState) -> None:
    messages = read_messages(
        [*_own()[0]["messages"][:2], {"role": "tool", "tool_call_id": "c1", "content": text, **fields}]
    )
    assert [record.state for record in call_records(messages)] == [state]


@pytest.mark.parametrize(
    "text",
    [
        "**Error**: no",
        "__Error__: no",
        "_error_: no",
        "`error`",
        "## Error\n\nno",
        "> Error: no",
        "- Error: no",
        "❌ Error: no",
        "⚠️ **Failed** to book",
        "🚫🚫 failure",
        "<error>no</error>",
        '<error code="5">no</error>',
        "<b>Error</b>: no",
        "<p class='x'><b>Error</b>: no",
        "\uff25\uff52\uff52\uff4f\uff52: no",
        "Er\u200bror: no",
        "\ufeffError: no",
        "\u200b\u200bError: no",
        '\ufeff{"error": "no"}',
        '\u200b {"ok": false}',
        "“Error”: no",
        "RuntimeError: no",
        "requests.exceptions.ConnectionError: no",
        "java.lang.NullPointerException: no",
        "HTTPError: 500",
        "HTTP_Error: 500",
        "**ValueError**: no",
        "❌ `ToolException`: no",
        "\uff36alueError: no",
        "Value\u200bError: no",
    ],
)
def test_words_that_begin_with_a_failure_say_it_in_any_dress(text: str) -> None:
    assert words_say_failed(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "❌",
        "**Booked**: no error",
        "❌ not an error",
        '[{"error": null}]',
        '{"error": null}',
        '\ufeff{"error": null}',
        "<error/>",
        "<error></error>",
        "<ok/>",
        "<p>no Error</p>",
        "error_rate: 5",
        "errors: 0",
        "terror: a film",
        "TerrorErrors: none",
        "RuntimeError",
        "RuntimeErrors: two kinds",
        "It raised RuntimeError: no",
        "mirror: clean",
        "0 failed",
        '{"note": "RuntimeError: no"}',
    ],
)
def test_words_that_only_mention_a_failure_do_not_say_it(text: str) -> None:
    assert not words_say_failed(text)


@pytest.mark.parametrize("status", ["rejected", "Declined", "refused", "DENIED", "not found", "sold-out", 409, 503])
@pytest.mark.parametrize("key", ["status", "outcome", "result", "statusCode"])
@pytest.mark.parametrize("reason", [{}, {"reason": "slot taken"}, {"message": "no", "code": "E7"}])
def test_a_result_that_only_refuses_is_a_failure(status: object, key: str, reason: Json) -> None:
    assert words_say_failed(json.dumps({key: status, **reason}))


@pytest.mark.parametrize(
    "value",
    [
        {"status": "500"},
        {"status": "404 Not Found"},
        {"status": "fail"},
        {"errors": ["no seat"]},
        {"errors": [{"code": 7}], "data": None},
        {"status": 500, "data": None},
        {"code": 404, "message": "no such order"},
    ],
)
def test_errors_of_web_services_are_failures(value: Json) -> None:
    assert words_say_failed(json.dumps(value))


@pytest.mark.parametrize(
    "value",
    [
        {"state": "blocked"},
        {"status": "blocked"},
        {"status": "rejected", "order": 7},
        {"status": 404_000},
        {"error": "None"},
        {"error": "no error", "status": "shipped"},
        {"errors": []},
        {"code": 404_001},
        {"code": "SAVE10"},
    ],
)
def test_a_status_of_data_is_not_a_failure(value: Json) -> None:
    assert not words_say_failed(json.dumps(value))


@given(
    st.sampled_from(
        [{"error": "x"}, {"ok": False}, {"success": "no"}, {"isError": True}, {"is_error": 1}, {"status": "failed"}]
    ),
    st.lists(
        st.sampled_from(["fence", "parts", "part", "result", "output", "list", "python", "blanks"]),
        max_size=3,
        unique=True,
    ),
)
def test_a_failure_counts_in_whatever_it_is_wrapped(failure: Json, wrappers: list[str]) -> None:
    text = json.dumps(failure)
    for wrapper in wrappers:
        match wrapper:
            case "fence":
                text = f"```json\n{text}\n```"
            case "parts":
                text = json.dumps([{"type": "text", "text": text}])
            case "part":
                text = json.dumps({"type": "text", "text": text})
            case "list":
                text = json.dumps([{"result": text}])
            case "python":
                text = str({"output": text})
            case "blanks":
                text = f"\u200b\n {text}"
            case _:
                text = json.dumps({wrapper: text})
    assert words_say_failed(text)


@given(st.recursive(st.none() | st.text(max_size=3) | st.booleans(), lambda inner: st.lists(inner), max_leaves=5))
def test_plain_data_says_nothing_of_a_failure(value: object) -> None:
    assert not words_say_failed(json.dumps({"rows": value}))
    assert not words_say_failed(json.dumps([{"rows": value}]))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{'a':" * 100_000,
        "[" * 5_000,
        "{'a': " * 2_000,
        "```" * 50_000,
        "<" * 100_000,
        "<>" * 50_000,
        "_" * 100_000,
        "A." * 50_000,
        "A" * 100_000,
        "é" * 100_000,
    ],
)
def test_a_long_result_is_read_only_at_its_beginning(text: str) -> None:
    assert not words_say_failed(text)


def test_a_call_without_a_result_is_requested_at_the_end_and_unanswered_before() -> None:
    asked, called, _, said = _own()[0]["messages"]
    assert [record.state for record in call_records(read_messages([asked, called]))] == ["requested"]
    assert [record.state for record in call_records(read_messages([asked, called, said]))] == ["unanswered"]


def test_an_unknown_outcome_is_refused_in_a_row_and_read_from_the_store() -> None:
    [row] = _own(outcome="maybe")
    with pytest.raises(
        ValueError, match=r"message 2: has the unknown outcome 'maybe'; write succeeded, failed, or refused"
    ):
        read_messages(row["messages"])
    [record] = call_records(load_messages(json.dumps(row["messages"])))
    assert record.state == "succeeded"


def test_the_outcome_is_not_sent_to_an_endpoint() -> None:
    message = ToolMessage(content="x", outcome="failed")
    assert message.to_wire() == {"role": "tool", "content": "x"}
    assert message.to_dict() == {"role": "tool", "content": "x", "outcome": "failed"}


@given(
    st.lists(
        st.sampled_from(["user", "call a", "call b", "call", "result a", "result b", "result", "says"]), max_size=12
    )
)
def test_pairing_never_invents_calls_or_results(steps: list[str]) -> None:
    rows: list[Json] = []
    for number, step in enumerate(steps):
        kind, _, identity = step.partition(" ")
        match kind:
            case "user":
                rows.append({"role": "user", "content": "?"})
            case "says":
                rows.append({"role": "assistant", "content": "!"})
            case "call":
                rows.append({"role": "assistant", "tool_calls": [{"id": identity or None, "name": f"t{number}"}]})
            case _:
                rows.append({"role": "tool", "tool_call_id": identity or None, "content": str(number)})
    messages = read_messages(rows)
    pairs = tool_results(messages)
    assert [call.name for call, _ in pairs] == [f"t{number}" for number, step in enumerate(steps) if "call" in step]
    results = [int(result.text) for _, result in pairs if result is not None]
    assert len(results) == len(set(results))
    for call, result in pairs:
        if result is not None:
            made, came = int(call.name[1:]), int(result.text)
            assert made < came
            has_call_of_its_id = result.tool_call_id and f"call {result.tool_call_id}" in steps[:came]
            if has_call_of_its_id:
                assert result.tool_call_id == call.id
            else:
                assert None in (result.tool_call_id, call.id)
                assert "user" not in steps[made:came]


@pytest.mark.parametrize(
    ("calls", "results", "answers"),
    [
        (["1"], ["2"], [None]),
        (["1", "2"], ["2", "3"], [None, 0]),
        (["1", "2"], ["3", None], [1, None]),
        (["1"], [None], [0]),
        (["1"], [""], [0]),
        ([None], ["2"], [0]),
        ([""], ["2"], [0]),
        (["1", None], ["2"], [None, 0]),
        ([None, None], [None, None], [0, 1]),
    ],
)
def test_a_result_with_the_id_of_no_call_answers_no_call_with_an_id(
    calls: list[str | None], results: list[str | None], answers: list[int | None]
) -> None:
    messages = read_messages(
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "tool_calls": [{"id": identity, "name": TOOL} for identity in calls]},
            *({"role": "tool", "tool_call_id": identity, "content": str(n)} for n, identity in enumerate(results)),
            {"role": "assistant", "content": "!"},
        ]
    )
    records = call_records(messages)
    assert [record.result and int(record.result.text) for record in records] == answers
    assert [record.state for record in records] == ["unanswered" if n is None else "succeeded" for n in answers]


@pytest.mark.parametrize(
    "fields",
    [
        {"Status": "error"},
        {"STATUS": "failed"},
        {"Outcome": "failed"},
        {"metadata": {"Status": "error"}},
        {"content": '"{\\"error\\": \\"x\\"}"'},
        {"content": '{"type": "error-text", "value": "x"}'},
    ],
)
def test_a_failure_counts_however_its_key_is_written(fields: dict[str, Any]) -> None:
    call: dict[str, Any] = {"id": "c1", "name": "pay", "arguments": {}}
    rows: list[Any] = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    message = {"role": "tool", "tool_call_id": "c1", "content": "done", **fields}
    (record,) = call_records(read_messages([*rows, message]))
    assert record.state == "failed"
