"""A small example of each format, as its files hold it."""

from __future__ import annotations

import json
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
_ANTHROPIC = [
    {"role": "user", "content": "And in Rome?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]},
    {"role": "assistant", "content": "It rains."},
]
_SHAREGPT = [{"from": "human", "value": "And in Rome?"}, {"from": "gpt", "value": "It rains."}]
_DEEPEVAL: dict[str, Any] = {
    "turns": [{"role": "user", "content": "And in Rome?"}, {"role": "assistant", "content": "It rains."}],
    "scenario": "asks about Rome",
    "expectedOutcome": "knows the weather",
}
_PROMPTFOO: dict[str, Any] = {
    "testCase": {"metadata": {}},
    "testIdx": 0,
    "promptIdx": 0,
    "provider": {"id": "openai:gpt-x"},
    "prompt": {"raw": "And in Rome?"},
    "response": {"output": "It rains."},
    "success": True,
    "score": 1,
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

EXAMPLES = (
    Example("vivavoce", "rows", [{"id": "a", "messages": _NATIVE}, {"id": "b", "input": "Hi.", "goal": "a greeting"}]),
    Example("vivavoce", "a list of rows", _document([{"id": "a", "messages": _NATIVE}]), ".json"),
    Example("langchain", "messages_to_dict", [_LANGCHAIN, {"messages": _LANGCHAIN}]),
    Example("langchain", "dumpd, a message a line", _DUMPD),
    Example("langchain", "model_dump", _document({"thread": 1, "messages": _LANGCHAIN_FLAT}), ".json"),
    Example("anthropic", "requests", [{"system": "Be kind.", "messages": _ANTHROPIC}]),
    Example("anthropic", "a message a line", [*_ANTHROPIC]),
    Example("sharegpt", "rows", [{"conversations": _SHAREGPT, "system": "Be kind."}]),
    Example("deepeval", "cases", [_DEEPEVAL]),
    Example("promptfoo", "results", [_PROMPTFOO]),
    Example("atif", "a trajectory", _document(_ATIF), ".json"),
    Example("atif", "trajectories", [_ATIF, _ATIF]),
    Example("letta", "a list of messages", _document(_LETTA), ".json"),
    Example("letta", "responses", [{"messages": _LETTA, "stop_reason": {"stop_reason": "end_turn"}}]),
    Example("letta", "an exported agent", _document({"agents": [_AGENT], "tools": []}), ".json"),
    Example("autogen", "results of tasks", [{"messages": _AUTOGEN, "stop_reason": "done"}]),
    Example("autogen", "a message a line", _AUTOGEN),
    Example("autogen", "the context of a model", [{"messages": _AUTOGEN_CONTEXT}]),
    Example("inspect", "a log", _document(_INSPECT_LOG), ".json"),
    Example("crewai", "outputs of tasks", [_TASK]),
    Example("crewai", "the output of a crew", [{"raw": "It rains.", "tasks_output": [_TASK]}]),
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
