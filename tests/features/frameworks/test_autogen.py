"""Agents and teams of AutoGen as targets, shaped as the real ones are (autogen-agentchat 0.7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from asking import asked, told
from vivavoce.errors import TargetFault
from vivavoce.records.score import Usage
from vivavoce.targets import FrameworkTarget


class Message:
    """A message with what `model_dump` returns of it."""

    def __init__(self, type_: str, source: str, content: Any, used: bool = False) -> None:
        self.type = type_
        self.fields = {"type": type_, "source": source, "content": content}
        self.models_usage = SimpleNamespace(prompt_tokens=5, completion_tokens=2) if used else None

    def model_dump(self) -> dict[str, Any]:
        return self.fields


class Team:
    """Remembers what was said to it, in a state that is saved and loaded; `ends` says whether a result comes."""

    def __init__(self, ends: bool = True) -> None:
        self.said: list[str] = []
        self.ends = ends
        self.running = 0

    async def save_state(self) -> dict[str, Any]:
        return {"said": list(self.said)}

    async def load_state(self, state: dict[str, Any]) -> None:
        self.said = list(state["said"])

    async def run_stream(self, task: str) -> AsyncIterator[Any]:
        self.running += 1
        assert self.running == 1
        self.said.append(task)
        await asyncio.sleep(0)
        call = Message("ToolCallRequestEvent", "desk", [{"id": "c1", "name": "find", "arguments": "{}"}], used=True)
        result = [{"call_id": "c1", "name": "find", "content": "sent", "is_error": False}]
        messages = [
            Message("TextMessage", "user", task),
            call,
            Message("ToolCallExecutionEvent", "desk", result),
            Message("TextMessage", "writer", " ".join(self.said), used=True),
        ]
        yield messages[0]
        yield Message("ModelClientStreamingChunkEvent", "writer", "a")
        if self.ends:
            yield SimpleNamespace(messages=messages, stop_reason=None)
        self.running -= 1


async def test_each_conversation_has_a_state_of_its_own() -> None:
    target = FrameworkTarget(Team(), "team")
    (first, second), others = await asyncio.gather(
        asked(target, "a", "b", name="c-1"), asked(target, "x", "y", name="c-2")
    )
    assert told(first) == [
        ("assistant", "desk", "", [("c1", "find", "{}")]),
        ("tool", "find", "sent", []),
        ("assistant", "writer", "a", []),
    ]
    assert first.usage == Usage(input_tokens=10, output_tokens=4, calls=2)
    assert 0 < (first.messages[0].metadata or {})["first_token"] < 1
    assert [second.messages[-1].text, *(reply.messages[-1].text for reply in others)] == ["a b", "x", "x y"]


async def test_half_a_message_is_a_fault() -> None:
    with pytest.raises(TargetFault, match="team ended in the middle of its reply") as raised:
        await asked(FrameworkTarget(Team(ends=False), "team"), "a")
    assert raised.value.kind == "cut"
