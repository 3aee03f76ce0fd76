"""LlamaIndex: an agent or a workflow of agents, with a context and a memory for each conversation, or a chat engine.

A chat engine has one memory, so it gets the messages of the conversation before each of them, and its turns wait for
each other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import to_jsonable_python

from vivavoce.comparing.call_outcomes import failed_if
from vivavoce.errors import TargetFault
from vivavoce.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from vivavoce.pacing.loops import PerLoop
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import (
    Beginning,
    Conversation,
    Framework,
    has,
    text_of,
    usage_in,
    value_in,
    with_answer,
)
from vivavoce.targets.target import FirstToken, Reply

_TITLE = "LlamaIndex"


@dataclass(slots=True)
class _Engine:
    """A chat engine, and the lock of whoever runs it."""

    thing: Any
    lock: PerLoop[asyncio.Lock] = field(default_factory=lambda: PerLoop(asyncio.Lock))


def _is_engine(thing: object) -> bool:
    return has(thing, "achat", "chat_history", "reset")


def _adapts(thing: object) -> bool:
    return _is_engine(thing) or has(thing, "run", "run_agent_step", "aggregate_tool_results")


def _prepared(thing: Any, name: str) -> Any:
    del name
    return _Engine(thing) if _is_engine(thing) else thing


async def _open(thing: Any, beginning: Beginning) -> Conversation:
    if isinstance(thing, _Engine):
        return _EngineConversation(thing, beginning)
    root = thing.agents[thing.root_agent] if has(thing, "agents", "root_agent") else thing
    memory = lazy("llama_index.core.memory:ChatMemoryBuffer").from_defaults(llm=root.llm)
    return _AgentConversation(thing, lazy("llama_index.core.workflow:Context")(thing), memory, beginning)


@dataclass(slots=True)
class _AgentConversation:
    agent: Any
    context: Any
    memory: Any
    beginning: Beginning

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        turn = _Turn()
        options = {"ctx": self.context, "memory": self.memory, **self.beginning.options}
        running = self.agent.run(user_msg=text_of(messages, _TITLE), **options)
        async for event in running.stream_events():
            if hasattr(event, "delta"):
                token.note_piece(event.delta)
            else:
                turn.add(event)
        result = await running
        return Reply(with_answer(turn.messages, _text(getattr(result, "response", result))), total(turn.usages))

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class _Turn:
    """The messages that the events of a turn tell of, with what they used."""

    messages: list[AnyMessage] = field(default_factory=list[AnyMessage])
    usages: list[Usage | None] = field(default_factory=list[Usage | None])
    called: set[str] = field(default_factory=set[str])

    def add(self, event: Any) -> None:
        """Add what an event tells of: an output of an agent, or the result of a tool."""
        if has(event, "tool_output", "tool_id"):
            self.messages.append(_result(event.tool_output, event.tool_id, event.tool_name))
        elif has(event, "response", "current_agent_name", "tool_calls"):
            new = [call for call in event.tool_calls if call.tool_id not in self.called]
            self.called |= {call.tool_id for call in new}
            calls = [ToolCall(id=call.tool_id, name=call.tool_name, args=call.tool_kwargs) for call in new]
            text = _text(event.response)
            if calls or text:
                said = AIMessage(content=text or None, name=event.current_agent_name or None, tool_calls=calls or None)
                self.messages.append(said)
            self.usages.append(_usage(getattr(event, "raw", None)))


@dataclass(slots=True)
class _EngineConversation:
    engine: _Engine
    beginning: Beginning
    history: list[Any] = field(default_factory=list[Any])

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        text, engine = text_of(messages, _TITLE), self.engine.thing
        async with self.engine.lock.get():
            response = await engine.achat(text, chat_history=self.history, **self.beginning.options)
            self.history = list(engine.chat_history)
        answer = _text(response)
        if not answer:
            raise TargetFault(f"{self.beginning.name} returned an answer without text", kind="format")
        found = [_text(node) for node in getattr(response, "source_nodes", None) or ()]
        said = AIMessage(content=answer)
        messages_of_tools = _tools(getattr(response, "sources", None) or ())
        return Reply([*messages_of_tools, said.model_copy(update={"retrieval_context": found}) if found else said])

    async def close(self) -> None:
        """Nothing is held."""


def _result(output: Any, called: str, name: str) -> ToolMessage:
    """Return what a tool returned, and whether it failed."""
    outcome = failed_if(getattr(output, "is_error", False) is True)
    message = ToolMessage(content=_text(output), tool_call_id=called, name=name)
    return message if outcome is None else message.model_copy(update={"outcome": outcome})


def _tools(sources: Sequence[Any]) -> list[AnyMessage]:
    """Return the calls and results of tools that a chat engine tells of."""
    told: list[AnyMessage] = []
    for number, source in enumerate(sources):
        name, called = str(source.tool_name), f"{source.tool_name}-{number}"
        args = source.raw_input.get("kwargs", source.raw_input)
        told.append(AIMessage(tool_calls=[ToolCall(id=called, name=name, args=args)]))
        told.append(_result(source, called, name))
    return told


def _text(thing: Any) -> str:
    """Return the text of an answer, a message, a node or the output of a tool."""
    for name in ("content", "response", "text"):
        value = getattr(thing, name, None)
        if isinstance(value, str):
            return value
    if isinstance(thing, dict | list | tuple | int | float):
        return json.dumps(to_jsonable_python(cast("object", thing), fallback=str), ensure_ascii=False)
    return "" if thing is None else str(thing)


def _usage(raw: Any) -> Usage | None:
    """Return what the raw answer of a model says that it used, as OpenAI and Anthropic write it."""
    used = value_in(raw, "usage")
    for names in (
        {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"},
        {"input_tokens": "input_tokens", "output_tokens": "output_tokens"},
    ):
        if (found := usage_in(used, **names)) is not None:
            return found
    return None


FRAMEWORK = Framework(_TITLE, "llama-index-core", "0.14", _adapts, _open, prepare=_prepared)
