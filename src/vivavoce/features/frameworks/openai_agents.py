"""The OpenAI Agents SDK: an `Agent`, run by the `Runner` of the package, with a session for each conversation.

After a handoff the agent that took over answers the next message. Each agent is named in what it says, and of several
the messages tell which tools each has, and who hands over to whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.conversations.objects import messages_of, plain, written_as
from vivavoce.conversations.shapes import tool_names
from vivavoce.messages import AIMessage, AnyMessage
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage
from vivavoce.targets.framework import Beginning, Framework, has, usage_in, value_in, waits_for, with_answer
from vivavoce.targets.target import FirstToken, Reply

_FORMAT, _WORDS = "openai-responses", "response.output_text.delta"


def _adapts(thing: object) -> bool:
    return has(thing, "handoffs", "instructions", "input_guardrails")


async def _open(agent: Any, beginning: Beginning) -> _Conversation:
    session = lazy("agents:SQLiteSession")(beginning.conversation_id)
    return _Conversation(agent, session, beginning)


@dataclass(slots=True)
class _Conversation:
    agent: Any
    session: Any
    beginning: Beginning

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        result = await self._run(_given(messages[-1]), token)
        if asking := getattr(result, "interruptions", None):
            names = ", ".join(str(getattr(one, "name", None) or "a tool") for one in asking)
            raise waits_for(self.beginning.name, f"the approval of {names}")
        self.agent = result.last_agent
        return Reply(_messages(result), _usage(result))

    async def _run(self, given: object, token: FirstToken) -> Any:
        runner, options = lazy("agents:Runner"), {"session": self.session, **self.beginning.options}
        if not self.beginning.stream:
            return await runner.run(self.agent, given, **options)
        result = runner.run_streamed(self.agent, given, **options)
        async for event in result.stream_events():
            if "delta" in (kind := str(value_in(event, "data.type"))):
                token.note_piece(value_in(event, "data.delta") if kind == _WORDS else None)
        return result

    async def close(self) -> None:
        self.session.close()


def _given(message: AnyMessage) -> object:
    """Return a message as the runner takes it: its text, or items where it has more than one."""
    if message.plain is not None:
        return message.plain
    return cast("Mapping[str, Any]", written_as(_FORMAT, [message]))["input"]


def _messages(result: Any) -> list[AnyMessage]:
    """Return the new messages of a run, each with the name of the agent that wrote it."""
    items: list[Any] = [(item, item.to_input_item()) for item in result.new_items]
    written = [raw for _, raw in items]
    by_call = {raw.get("call_id"): item.agent.name for item, raw in items if raw.get("call_id")}
    texts = iter([item.agent.name for item, raw in items if raw.get("type") == "message"])
    tools = _tools(item.agent for item, _ in items)
    named: list[AnyMessage] = []
    for message in messages_of(plain(written), _FORMAT) if written else []:
        speaker = None
        if isinstance(message, AIMessage):
            speaker = next(texts, None) if message.content is not None or message.refusal else None
            speaker = speaker or next((by_call.get(call.id) for call in message.tool_calls or ()), None)
        told = {"name": speaker, **({"agent_tools": tools[speaker]} if speaker in tools else {})}
        named.append(message if speaker is None else message.model_copy(update=told))
    return with_answer(named, result.final_output)


def _tools(agents: Iterable[Any]) -> dict[str, list[str]]:
    """Return the names of the tools of each agent, where there are several; an MCP server tells its own when asked."""
    found = {agent.name: agent for agent in agents}
    if len(found) < 2 and not any(agent.handoffs for agent in found.values()):
        return {}
    named = {
        name: tool_names([getattr(tool, "name", None) for tool in agent.tools])
        for name, agent in found.items()
        if hasattr(agent, "tools")
    }
    return {name: tools for name, tools in named.items() if tools is not None}


def _usage(result: Any) -> Usage | None:
    return usage_in(
        result.context_wrapper.usage,
        input_tokens="input_tokens",
        output_tokens="output_tokens",
        cached_input_tokens="input_tokens_details.cached_tokens",
        reasoning_tokens="output_tokens_details.reasoning_tokens",
        calls="requests",
    )


FRAMEWORK = Framework("the OpenAI Agents SDK", "openai-agents", "0.24", _adapts, _open, streams=True)
