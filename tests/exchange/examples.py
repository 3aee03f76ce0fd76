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

EXAMPLES = (
    Example("vivavoce", "rows", [{"id": "a", "messages": _NATIVE}, {"id": "b", "input": "Hi.", "goal": "a greeting"}]),
    Example("vivavoce", "a list of rows", _document([{"id": "a", "messages": _NATIVE}]), ".json"),
    Example("langchain", "messages_to_dict", [_LANGCHAIN, {"messages": _LANGCHAIN}]),
    Example("langchain", "dumpd, a message a line", _DUMPD),
    Example("langchain", "model_dump", _document({"thread": 1, "messages": _LANGCHAIN_FLAT}), ".json"),
    Example("anthropic", "requests", [{"system": "Be kind.", "messages": _ANTHROPIC}]),
    Example("anthropic", "a message a line", [*_ANTHROPIC]),
    Example("sharegpt", "rows", [{"conversations": _SHAREGPT, "system": "Be kind."}]),
)
