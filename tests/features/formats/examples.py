"""A small example of each format, as its files hold it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Example:
    """A file of one format: the records of a JSONL file, or the bytes of another."""

    format: str
    about: str
    content: list[Any] | bytes
    suffix: str = ".jsonl"

    def write(self, folder: Path) -> Path:
        """Write the example into a folder, and return the file."""
        path = folder / f"{self.format}{self.suffix}"
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            path.write_text("".join(json.dumps(record) + "\n" for record in self.content))
        return path


def _document(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode()


_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
_NATIVE = [
    {"role": "user", "content": "And in Rome?"},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "content": "rain", "tool_call_id": "c1"},
    {"role": "assistant", "content": "It rains."},
]
_LANGCHAIN: list[dict[str, Any]] = [
    {"type": "human", "data": {"content": "And in Rome?", "type": "human", "name": None}},
    {
        "type": "ai",
        "data": {
            "content": "",
            "type": "ai",
            "tool_calls": [{"name": "weather", "args": {"city": "Rome"}, "id": "c1"}],
        },
    },
    {"type": "tool", "data": {"content": "rain", "type": "tool", "tool_call_id": "1", "name": "weather"}},
    {"type": "ai", "data": {"content": "It rains.", "type": "ai", "tool_calls": []}},
]
_LANGCHAIN_FLAT: list[Any] = [
    {"additional_kwargs": {}, "response_metadata": {}, **message["data"]} for message in _LANGCHAIN
]
_DUMPD = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": message["data"]}
    for name, message in zip(("HumanMessage", "AIMessage", "ToolMessage", "AIMessage"), _LANGCHAIN, strict=True)
]
_ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "And in Rome?"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
]


def _database(*statements: str, rows: list[tuple[Any, ...]]) -> bytes:
    """Return an SQLite file that these statements make; the last one inserts the rows."""
    with closing(sqlite3.connect(":memory:")) as database:
        for statement in statements[:-1]:
            database.execute(statement)
        database.executemany(statements[-1], rows)
        database.commit()
        return database.serialize()


_SESSIONS = _database(
    "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id, message_data, created_at)",
    "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
    rows=[("a", json.dumps(item)) for item in _ITEMS],
)
_ANTHROPIC = [
    {"role": "user", "content": "And in Rome?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]},
    {"role": "assistant", "content": "It rains."},
]
_VERCEL: list[Any] = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "And in Rome?"}]},
    {
        "id": "m2",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {}, "output": "rain"},
            {"type": "text", "text": "It rains.", "state": "done"},
        ],
    },
]
_GEMINI: list[Any] = [
    {"role": "user", "parts": [{"text": "And in Rome?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Rome"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": "rain"}}}]},
    {"role": "model", "parts": [{"text": "It rains."}]},
]
_EVENTS: list[Any] = [
    {"author": author, "invocationId": "i", "timestamp": 1795395597.5, "content": content, "actions": {}}
    for author, content in zip(("user", "agent", "agent", "agent"), _GEMINI, strict=True)
]
_PYDANTIC: list[Any] = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "And in Rome?"}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "w", "args": {}, "tool_call_id": "c1"}]},
    {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "w", "content": 1, "tool_call_id": "c1"}]},
    {"kind": "response", "parts": [{"part_kind": "text", "content": "It rains."}]},
]
_SHAREGPT = [{"from": "human", "value": "And in Rome?"}, {"from": "gpt", "value": "It rains."}]

_CASES = [
    {
        "turns": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}],
        "scenario": "a greeting",
    },
    {"input": "Hi.", "actual_output": "Hello.", "expected_output": "Hello."},
]
_PROMPTFOO: dict[str, Any] = {
    "testCase": {"metadata": {}},
    "testIdx": 0,
    "promptIdx": 0,
    "provider": {"id": "p", "label": "p"},
    "prompt": {"raw": "Hi."},
    "response": {"output": "Hello."},
    "success": True,
    "score": 1,
}


def _attributes(known: dict[str, Any]) -> list[Any]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in known.items()]


def _otlp(known: dict[str, Any]) -> dict[str, Any]:
    span = {"traceId": "t", "spanId": "s", "name": "chat", "attributes": _attributes(known)}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


_IN_PARTS = [
    {"role": "user", "parts": [{"type": "text", "content": "And in Rome?"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]},
]
_GEN_AI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.input.messages": json.dumps(_IN_PARTS[:1]),
    "gen_ai.output.messages": json.dumps(_IN_PARTS[1:]),
}
_LLM = {
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "And in Rome?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "It rains.",
}
_PHOENIX = {"name": "llm", "context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "attributes": _LLM}
_PHOENIX_ROW: dict[str, Any] = {
    "span_kind": "LLM",
    "context.trace_id": "t",
    "context.span_id": "s",
    **{f"attributes.{key}": value for key, value in _LLM.items()},
}
_AGENTS_TRACE: list[dict[str, Any]] = [
    {"object": "trace", "id": "t", "workflow_name": "w", "group_id": None, "metadata": None},
    {
        "object": "trace.span",
        "id": "s",
        "trace_id": "t",
        "started_at": "2026-11-22T10:00:00Z",
        "span_data": {"type": "generation", "input": _NATIVE[:1], "output": _NATIVE[3:]},
    },
]
_OBSERVATION = {
    "id": "o",
    "traceId": "t",
    "type": "GENERATION",
    "startTime": "2026-11-22T10:00:00Z",
    "input": _LANGCHAIN_FLAT[:3],
    "output": _LANGCHAIN_FLAT[3],
}
_TRACE: dict[str, Any] = {"id": "t", "timestamp": "2026-11-22T10:00:00Z", "tags": [], "bookmarked": False}
_RUN = {
    "id": "r",
    "trace_id": "r",
    "run_type": "llm",
    "inputs": {"messages": [_DUMPD[:3]]},
    "outputs": {"generations": [[{"text": "It rains.", "message": _DUMPD[3]}]]},
}
_ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s",
    "agent": {"name": "bot", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "And in Rome?"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "weather", "arguments": {"city": "Rome"}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "rain"}]},
        },
    ],
}
_LETTA: list[dict[str, Any]] = [
    {"id": "1", "message_type": "user_message", "date": "2025-10-16T14:30:00Z", "content": "And in Rome?"},
    {"id": "2", "message_type": "reasoning_message", "date": "2025-10-16T14:30:01Z", "reasoning": "Look."},
    {
        "id": "2",
        "message_type": "tool_call_message",
        "date": "2025-10-16T14:30:01Z",
        "tool_call": {"name": "weather", "arguments": "{}", "tool_call_id": "c1"},
    },
    {
        "id": "3",
        "message_type": "tool_return_message",
        "date": "2025-10-16T14:30:02Z",
        "tool_return": "rain",
        "status": "success",
        "tool_call_id": "c1",
    },
]
_AGENT: dict[str, Any] = {
    "id": "agent-0",
    "agent_type": "letta_v1_agent",
    "in_context_message_ids": [],
    "messages": [
        {
            "id": "message-0",
            "agent_id": "agent-0",
            "role": "user",
            "content": [{"type": "text", "text": "And in Rome?"}],
        },
        {"id": "message-1", "agent_id": "agent-0", "role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
    ],
}
_AUTOGEN: list[dict[str, Any]] = [
    {"id": "1", "source": "user", "metadata": {}, "content": "And in Rome?", "type": "TextMessage"},
    {
        "id": "2",
        "source": "bot",
        "metadata": {},
        "content": [{"id": "c1", "arguments": "{}", "name": "weather"}],
        "type": "ToolCallRequestEvent",
    },
    {
        "id": "3",
        "source": "bot",
        "metadata": {},
        "content": [{"content": "rain", "name": "weather", "call_id": "c1", "is_error": False}],
        "type": "ToolCallExecutionEvent",
    },
]
_AUTOGEN_CONTEXT: list[dict[str, Any]] = [
    {"content": "Be kind.", "type": "SystemMessage"},
    {"content": "And in Rome?", "source": "user", "type": "UserMessage"},
    {"content": "It rains.", "thought": None, "source": "bot", "type": "AssistantMessage"},
]
_INSPECT: dict[str, Any] = {
    "id": 1,
    "epoch": 1,
    "input": "And in Rome?",
    "target": "rain",
    "messages": [
        {"id": "a", "role": "user", "content": "And in Rome?", "source": "input"},
        {
            "id": "b",
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": "weather", "arguments": {"city": "Rome"}, "type": "function"}],
        },
        {"id": "c", "role": "tool", "content": "rain", "tool_call_id": "c1", "function": "weather"},
    ],
    "scores": {"includes": {"value": "C"}},
}
_INSPECT_LOG = {
    "version": 2,
    "status": "success",
    "eval": {"task": "t"},
    "plan": {},
    "stats": {},
    "samples": [_INSPECT],
}
_TASK: dict[str, Any] = {
    "description": "And in Rome?",
    "raw": "It rains.",
    "agent": "bot",
    "output_format": "raw",
}
_CREWAI_EVENTS: list[dict[str, Any]] = [
    {"type": "task_started", "event_id": "1", "source_fingerprint": None, "task_name": "And in Rome?"},
    {"type": "task_completed", "event_id": "2", "source_fingerprint": None, "output": _TASK},
]
_CREWAI_LOG = [{"timestamp": "2026-01-01 00:00:01", "task": "And in Rome?", "agent": "bot", "status": "started"}]
_LIVEKIT: dict[str, Any] = {
    "items": [
        {"id": "1", "type": "message", "role": "user", "content": ["And in Rome?"], "interrupted": False},
        {"id": "2", "type": "function_call", "call_id": "c1", "arguments": "{}", "name": "weather"},
        {
            "id": "3",
            "type": "function_call_output",
            "call_id": "c1",
            "name": "weather",
            "output": "rain",
            "is_error": False,
        },
        {"id": "4", "type": "message", "role": "assistant", "content": ["It rains."], "interrupted": True},
    ]
}
_PIPECAT: list[dict[str, Any]] = [
    {"role": "user", "content": "And in Rome?", "timestamp": "2026-01-01T00:00:01Z", "user_id": "ann"},
    {"role": "assistant", "content": "It rains.", "timestamp": "2026-01-01T00:00:02Z", "interrupted": True},
]
_TAU_OLD: dict[str, Any] = {"task_id": 1, "reward": 1.0, "info": {"task": {}}, "traj": _NATIVE, "trial": 0}
_TAU: dict[str, Any] = {
    "info": {"environment_info": {"domain_name": "weather", "policy": "Be kind."}},
    "tasks": [{"id": "1", "user_scenario": {"instructions": "Ask about Rome."}}],
    "simulations": [
        {
            "id": "s",
            "task_id": "1",
            "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "user", "content": "And in Rome?", "turn_idx": 0},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "name": "weather", "arguments": {}}],
                },
                {"id": "c1", "role": "tool", "content": "rain", "requestor": "assistant", "error": False},
            ],
        }
    ],
}
_TURNS: list[dict[str, Any]] = [
    {"session": "a", "speaker": "customer", "text": "And in Rome?", "turn": 1},
    {"session": "a", "speaker": "bot", "text": "It rains.", "turn": 2},
]

_LETTA_EVALS: dict[str, Any] = {
    "sample_id": 0,
    "agent_id": "agent-0",
    "trajectory": [
        [
            {"message_type": "user_message", "id": "1", "date": "2026-01-01T00:00:01Z", "content": "And in Rome?"},
            {"message_type": "assistant_message", "id": "2", "date": "2026-01-01T00:00:02Z", "content": "It rains."},
        ]
    ],
    "grades": {"right": {"score": 1.0, "rationale": "so it is"}},
}

_RAGAS: dict[str, Any] = {
    "user_input": [
        {"content": "And in Rome?", "type": "human"},
        {"content": "", "type": "ai", "tool_calls": [{"name": "weather", "args": {"city": "Rome"}}]},
        {"content": "rain", "type": "tool"},
        {"content": "It rains.", "type": "ai"},
    ],
    "reference": "It rains.",
    "reference_tool_calls": [{"name": "weather", "args": {"city": "Rome"}}],
    "reference_topics": ["weather"],
}
_RAGAS_OLD = {"question": "And in Rome?", "answer": "It rains.", "contexts": ["rain"], "ground_truth": "It rains."}

EXAMPLES = (
    Example("vivavoce", "rows", [{"id": "a", "messages": _NATIVE}, {"id": "b", "input": "Hi.", "goal": "a greeting"}]),
    Example("vivavoce", "a list of rows", _document([{"id": "a", "messages": _NATIVE}]), ".json"),
    Example("otel", "a collector's lines", [_otlp({"http.method": "GET"}), _otlp(_GEN_AI), _otlp(_LLM)]),
    Example("otel", "a document", _document(_otlp(_GEN_AI)), ".json"),
    Example("openinference", "spans of Phoenix", [_PHOENIX]),
    Example("openinference", "a page of its interface", _document({"data": [_PHOENIX], "next_cursor": None}), ".json"),
    Example("openinference", "rows of its data frame", [_PHOENIX_ROW]),
    Example("langfuse", "observations", [_OBSERVATION]),
    Example("langfuse", "a page of its interface", _document({"data": [_OBSERVATION], "meta": {}}), ".json"),
    Example("langfuse", "a trace", _document({"trace": _TRACE, "observations": [_OBSERVATION]}), ".json"),
    Example(
        "langfuse",
        "a session",
        _document({"id": "s", "traces": [{**_TRACE, "input": "Hi.", "output": "Yes."}]}),
        ".json",
    ),
    Example("langsmith", "runs", [_RUN]),
    Example("langsmith", "a list of runs", _document({"runs": [_RUN]}), ".json"),
    Example("langchain", "messages_to_dict", [_LANGCHAIN, {"messages": _LANGCHAIN}]),
    Example("langchain", "dumpd, a message a line", _DUMPD),
    Example("langchain", "model_dump", _document({"thread": 1, "messages": _LANGCHAIN_FLAT}), ".json"),
    Example("openai-responses", "lists of items", [_ITEMS, _ITEMS[:1]]),
    Example("openai-responses", "requests", [{"model": "m", "input": _ITEMS, "instructions": "Be kind."}]),
    Example("openai-responses", "a response", _document({"id": "r", "object": "response", "output": _ITEMS}), ".json"),
    Example("openai-responses", "an item a line", [*_ITEMS]),
    Example("openai-agents", "an SQLite file", _SESSIONS, ".db"),
    Example("openai-agents-traces", "an object a line", _AGENTS_TRACE),
    Example("openai-agents-traces", "an export", _document({"data": _AGENTS_TRACE}), ".json"),
    Example("anthropic", "requests", [{"system": "Be kind.", "messages": _ANTHROPIC}]),
    Example("anthropic", "a message a line", [*_ANTHROPIC]),
    Example("vercel", "chats", [{"id": "chat", "messages": _VERCEL}, _VERCEL]),
    Example("vercel", "a message a line", _VERCEL),
    Example("gemini", "requests", [{"contents": _GEMINI, "system_instruction": "Be kind."}, _GEMINI]),
    Example("gemini", "a content a line", _GEMINI),
    Example("google-adk", "a session", _document({"id": "s", "appName": "a", "events": _EVENTS}), ".json"),
    Example("google-adk", "an event a line", [*_EVENTS]),
    Example("pydantic-ai", "histories", [_PYDANTIC, {"messages": _PYDANTIC}]),
    Example("pydantic-ai", "a history", _document(_PYDANTIC), ".json"),
    Example("sharegpt", "rows", [{"conversations": _SHAREGPT, "system": "Be kind."}]),
    Example("ragas", "conversations", [_RAGAS]),
    Example("ragas", "rows of 0.1", [_RAGAS_OLD]),
    Example("deepeval", "test cases", _document(_CASES), ".json"),
    Example("promptfoo", "a result a line", [_PROMPTFOO]),
    Example("promptfoo", "results", _document({"results": {"version": 3, "results": [_PROMPTFOO]}}), ".json"),
    Example("letta-evals", "rows of results", [_LETTA_EVALS]),
    Example("atif", "a trajectory", _document(_ATIF), ".json"),
    Example("atif", "trajectories", [_ATIF, _ATIF]),
    Example("letta", "a list of messages", _document(_LETTA), ".json"),
    Example("letta", "responses", [{"messages": _LETTA, "stop_reason": {"stop_reason": "end_turn"}}]),
    Example("letta", "an exported agent", _document({"agents": [_AGENT], "tools": []}), ".json"),
    Example("autogen", "results of tasks", [{"messages": _AUTOGEN, "stop_reason": "done"}]),
    Example("autogen", "a message a line", _AUTOGEN),
    Example("autogen", "the context of a model", [{"messages": _AUTOGEN_CONTEXT}]),
    Example("inspect", "samples with messages that could be ours", [{**_INSPECT, "messages": _NATIVE}]),
    Example("inspect", "a log", _document(_INSPECT_LOG), ".json"),
    Example("crewai", "outputs of tasks", [_TASK]),
    Example("crewai", "the output of a crew", [{"raw": "It rains.", "tasks_output": [_TASK]}]),
    Example("crewai", "outputs of tasks with their messages", [{**_TASK, "messages": _NATIVE}]),
    Example("crewai", "the output of an agent", [{"raw": "It rains.", "agent_role": "bot", "messages": _NATIVE}]),
    Example("crewai", "events", _CREWAI_EVENTS),
    Example("crewai", "a log", _document(_CREWAI_LOG), ".json"),
    Example("livekit", "a session", [_LIVEKIT]),
    Example("livekit", "a report", _document({"job_id": "j", "chat_history": _LIVEKIT}), ".json"),
    Example("pipecat", "a transcript", _PIPECAT),
    Example("tau", "results of tau-bench", [_TAU_OLD]),
    Example("tau", "results of tau²-bench", _document(_TAU), ".json"),
    Example("turns", "rows", _TURNS),
    Example("turns", "a table", b"session,speaker,text\na,customer,And in Rome?\na,bot,It rains.\n", ".csv"),
)
