"""`OpenAITarget`: a model or bot behind an OpenAI-compatible chat completions endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vivavoce.errors import Fault, SuiteFault, TargetFault
from vivavoce.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from vivavoce.records.score import Usage, shorten, total
from vivavoce.records.trajectory import default_calls, tool_results
from vivavoce.targets.target import OfferedTools, Opening, Reply, Tools, ToolSession, World, unanswered
from vivavoce.wire.chat import ChatEndpoint, checked_settings, wire_messages
from vivavoce.wire.http import Limits
from vivavoce.wire.own_traffic import add_marks

_ENDED = (None, "stop", "tool_calls", "function_call")


class OpenAITarget:
    """A chat completions endpoint, which gets the whole conversation with each call.

    `settings` are sent as they are (`temperature`, `max_tokens`, …). `tools` are definitions, which are only offered: a
    reply that calls one is recorded as it is; or a `vivavoce.tools.Toolbox`, which answers the calls, so that a turn
    goes on until the model answers the user. What a provider adds to its messages is sent back to it in the next turn.

    Raises:
        UsageError: `base_url` is not a web address, or `settings` set a part of the request that is built here.
    """

    stateless = True

    def __init__(
        self,
        name: str,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        system_prompt: str | None = None,
        settings: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | Tools = (),
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self.endpoint = ChatEndpoint(base_url, api_key, limits)
        self.opening = (SystemMessage(content=system_prompt),) if system_prompt else ()
        self.body = {"model": model, **checked_settings(settings or {}, name)}
        self.visible_calls = default_calls("openai", offers_tools=not isinstance(tools, Sequence) or bool(tools))
        self.tools = OfferedTools([dict(tool) for tool in tools]) if isinstance(tools, Sequence) else tools

    async def open(self, opening: Opening) -> OpenAISession:
        """Begin a conversation.

        Raises:
            Fault: the tool server cannot be reached.
        """
        world = World() if opening.state is None else World(dict(opening.state)).copy()
        return OpenAISession(self, await self.tools.open(opening), world, opening.state is not None)

    async def close(self) -> None:
        """Close the connections."""
        await self.endpoint.close()


@dataclass(slots=True)
class _Turn:
    """What was done so far in answer to these messages, and the calls that are to be answered next."""

    asked: Sequence[AnyMessage]
    world: World
    done: list[AnyMessage] = field(default_factory=list[AnyMessage])
    due: list[ToolCall] = field(default_factory=list[ToolCall])
    usage: Usage | None = None
    steps: int = 0


@dataclass(slots=True)
class OpenAISession:
    """One conversation; the endpoint remembers nothing of it.

    A conversation that is taken back some messages finds the world as it was after this many messages, and a turn that
    failed and is tried again goes on from there.
    """

    target: OpenAITarget
    tools: ToolSession
    world: World
    has_state: bool = False
    _worlds: dict[int, World] = field(init=False)
    _failed: _Turn | None = None

    def __post_init__(self) -> None:
        self._worlds = {0: self.world}

    @property
    def id(self) -> str | None:
        """None: the endpoint has no name for a conversation."""
        return None

    @property
    def opening(self) -> Sequence[AnyMessage]:
        """The system prompt, where there is one."""
        return self.target.opening

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Send the conversation so far and return what the model did until it answered, tool calls and their results.

        A message that did not end by itself says so: `metadata["finish_reason"]` is `length` or `content_filter`.

        Raises:
            TargetFault: the endpoint failed, or the model does nothing but call tools.
            SuiteFault: nobody answers a tool, or who should failed.
        """
        turn, self._failed = self._failed, None
        if turn is None or turn.asked is not messages:
            turn = _Turn(messages, self._world(messages).copy())
        try:
            while not await self._answered(turn):
                pass
        except Fault as fault:
            self._failed = turn
            raise _with_steps(fault, turn.done) from fault.__cause__
        self.world = turn.world
        self._worlds[len(messages) + len(turn.done)] = turn.world
        return Reply(turn.done, turn.usage)

    def _world(self, messages: Sequence[AnyMessage]) -> World:
        """Return what the tools found when the last of these messages was sent."""
        if isinstance(before := messages[-2] if len(messages) > 1 else None, AIMessage) and before.tool_calls:
            raise unanswered(before.tool_calls[0].name)
        return self._worlds.get(len(messages) - 1) or self._worlds[0]

    async def _answered(self, turn: _Turn) -> bool:
        """Answer the calls that are due and ask the model; say whether it has answered the user."""
        while turn.due:
            turn.done.append(await self._result(turn.due[0], turn))
            del turn.due[0]
        message = await self._ask(turn)
        turn.done.append(message)
        if not message.tool_calls or not self.tools.max_steps:
            return True
        if turn.steps == self.tools.max_steps:
            raise TargetFault(
                f"{self.target.name} called tools {turn.steps + 1} times in one turn and did not answer the user; "
                f"max_steps is {self.tools.max_steps}",
                kind="steps",
            )
        turn.steps += 1
        turn.due = list(message.tool_calls)
        return False

    async def _ask(self, turn: _Turn) -> AIMessage:
        target, offered = self.target, self.tools.offered
        messages = wire_messages([*target.opening, *turn.asked, *turn.done])
        tools = {"tools": offered} if offered else {}
        completion = await target.endpoint.complete({**target.body, **tools, "messages": messages}, add_marks())
        turn.usage = total([turn.usage, completion.usage])
        message = completion.message
        if completion.finish_reason not in _ENDED:
            notes = {**(message.metadata or {}), "finish_reason": completion.finish_reason}
            message = message.model_copy(update={"metadata": notes})
        return message

    async def _result(self, call: ToolCall, turn: _Turn) -> ToolMessage:
        return await self.tools.answer(call, [*turn.asked, *turn.done], turn.world)

    async def go_on(self, messages: Sequence[AnyMessage]) -> None:
        """Find the world as these messages left it: their calls are made again, on a copy, and their answers compared.

        Calls that a server answered are not: they would change it a second time.

        Raises:
            SuiteFault: the row has a state, and an answer is not what it was (kind `no_state`).
        """
        world = self.world.copy()
        for place, message in enumerate(messages):
            calls = message.tool_calls or () if isinstance(message, AIMessage) else ()
            for call, answer in tool_results(messages[place : place + 1 + len(calls)])[: len(calls)]:
                if answer is not None:
                    await self._make_again(call, answer, messages[: place + 1], world)
        self.world = self._worlds[len(messages)] = world

    async def _make_again(
        self, call: ToolCall, answer: ToolMessage, history: Sequence[AnyMessage], world: World
    ) -> None:
        if not self.tools.max_steps or (answer.metadata or {}).get("answered_by") == "mcp":
            found = "no tool answers it again"
        else:
            try:
                again = await self.tools.answer(call, history, world)
                found = None if again.text == answer.text else f"it now answers {shorten(again.text, 120)}"
            except Fault as fault:
                found = str(fault)
        if found is not None and self.has_state:
            then = f"{call.name}({shorten(call.function.arguments, 120)}) answered {shorten(answer.text, 120)}"
            raise SuiteFault(f"no state to return to: {then}, but {found}", kind="no_state")

    async def state(self) -> dict[str, Any] | None:
        """Return the state of the row as the tools left it, None where the row has none or it is not known."""
        return self.tools.state(self.world) if self.has_state else None

    async def close(self) -> None:
        """End what the tools began."""
        await self.tools.close()


def _with_steps(fault: Fault, done: Sequence[AnyMessage]) -> Fault:
    """Return a failure with what the model had done in the turn, where nothing else was seen."""
    if not done or fault.evidence is not None:
        return fault
    return fault.restate(str(fault), evidence=shorten("\n".join(message.pretty_repr() for message in done)))
