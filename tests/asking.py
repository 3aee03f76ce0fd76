"""Conversations with targets, and packages of others that are not installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from vivavoce.messages import AnyMessage, HumanMessage
from vivavoce.targets.target import Opening, Reply, Target


async def asked(target: Target, *lines: str, name: str = "c-1") -> list[Reply]:
    """Hold one conversation and return the replies."""
    session = await target.open(Opening(name, "s"))
    messages: list[AnyMessage] = []
    replies: list[Reply] = []
    for line in lines:
        messages.append(HumanMessage(content=line))
        replies.append(await session.send(messages))
        messages += replies[-1].messages
    assert await session.state() is None
    await session.close()
    await target.close()
    return replies


Told = tuple[str, str | None, str, list[tuple[str | None, str, str]]]


def told(reply: Reply) -> list[Told]:
    """Return the role, the speaker, the words and the calls of each message."""
    return [
        (
            message.role,
            message.name,
            message.text,
            [(call.id, call.name, call.function.arguments) for call in getattr(message, "tool_calls", None) or ()],
        )
        for message in reply.messages
    ]


def installed(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """Let a module be imported that has these members."""
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = ".".join(parts[:length])
        module = sys.modules.get(path) if length < len(parts) else None
        monkeypatch.setitem(sys.modules, path, module or ModuleType(path))
    vars(sys.modules[name]).update(members)
