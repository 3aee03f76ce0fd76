"""CrewAI: an `Agent`, a `Crew` or a `Flow`, run by its `kickoff` in a thread of its own.

What a turn used is what its events tell, for models count all that was ever asked of them.
An agent gets the conversation as messages. A crew and a flow get as inputs the text of the last message, `message` or
the one placeholder that their tasks have, the conversation before it as a text, `history`, and `conversation_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

from vivavoce.conversations.objects import messages_of, plain
from vivavoce.errors import UsageError
from vivavoce.messages import AnyMessage, said_by_assistant
from vivavoce.pacing.loops import in_thread
from vivavoce.plugins import lazy
from vivavoce.records.score import Usage, total
from vivavoce.targets.framework import (
    Beginning,
    Framework,
    has,
    of_target,
    text_of,
    usage_in,
    with_answer,
)
from vivavoce.targets.target import FirstToken, Reply

_TITLE = "CrewAI"
_INPUTS = ("message", "history", "conversation_id")
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """An object with `kickoff`; `text_key` is the input that gets the message, None for an agent, which has none."""

    thing: Any
    text_key: str | None


def _adapts(thing: object) -> bool:
    return has(thing, "kickoff") and any(hasattr(thing, name) for name in ("role", "tasks", "state"))


def _prepared(thing: Any, name: str) -> _Asked:
    if not hasattr(thing, "tasks"):
        return _Asked(thing, None if hasattr(thing, "role") else "message")
    wanted = sorted(set(thing.fetch_inputs()))
    others = [key for key in wanted if key not in _INPUTS]
    if not wanted:
        raise UsageError(f"the tasks of {name} have no placeholder for the message; write {{message}} in a description")
    if len(others) > 1 or (others and "message" in wanted):
        hint = "it gets 'message', 'history' and 'conversation_id', so fill the others in a function that is the target"
        raise UsageError(f"the tasks of {name} have the placeholders {', '.join(wanted)}; {hint}")
    return _Asked(thing, others[0] if others else "message")


async def _open(asked: _Asked, beginning: Beginning) -> _Conversation:
    crew = asked.thing if hasattr(asked.thing, "tasks") else None
    return _Conversation(asked.thing if crew is None else crew.copy(), asked.text_key, beginning)


@dataclass(frozen=True, slots=True)
class _Conversation:
    thing: Any
    text_key: str | None
    beginning: Beginning

    @property
    def id(self) -> str:
        return self.beginning.conversation_id

    async def send(self, messages: Sequence[AnyMessage], token: FirstToken) -> Reply:
        text = text_of(messages, _TITLE)
        if self.text_key is None:
            given: Any = [{"role": message.role, "content": message.text} for message in _spoken(messages)]
            run = partial(self.thing.kickoff, given, **self.beginning.options)
        else:
            inputs = {self.text_key: text, "history": _history(messages), "conversation_id": self.id}
            run = partial(self.thing.kickoff, inputs=inputs, **self.beginning.options)
        turn = _Turn(token)
        output = await in_thread(partial(_finished, run, turn))
        return Reply(_messages(output), total(turn.used))

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class _Turn:
    """What the events of a turn tell: what each call of a model used, and that a piece of a reply came."""

    token: FirstToken
    used: list[Usage | None] = field(default_factory=list[Usage | None])


_turn: ContextVar[_Turn | None] = ContextVar("_turn", default=None)
"""The turn that runs: CrewAI calls those who listen in the context of who told."""


@cache
def _listen(bus: Any) -> None:
    """Listen to the events of CrewAI."""

    def on_answer(source: object, event: Any) -> None:
        del source
        if (turn := _turn.get()) is not None:
            turn.used.append(_usage(event.usage))

    def on_piece(source: object, event: Any) -> None:
        del source
        if (turn := _turn.get()) is not None:
            turn.token.note_piece(getattr(event, "chunk", None))

    bus.register_handler(lazy("crewai.events:LLMCallCompletedEvent"), on_answer)
    bus.register_handler(lazy("crewai.events:LLMStreamChunkEvent"), on_piece)


def _finished(run: partial[Any], turn: _Turn) -> Any:
    """Return the output of a run, of one that streams when it has ended, and its events have been heard."""
    bus = lazy("crewai.events:crewai_event_bus")
    _listen(bus)
    _turn.set(turn)
    try:
        output = run()
        if has(output, "result", "is_completed"):
            for _ in output:
                turn.token.note_piece()
            output = output.result
        bus.flush()
    finally:
        _turn.set(None)
    return output


def _spoken(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    return [message for message in messages if message.role in _SPEAKERS and message.text]


def _history(messages: Sequence[AnyMessage]) -> str:
    return "\n".join(f"{_SPEAKERS[message.role]}: {message.text}" for message in _spoken(messages[:-1]))


def _messages(output: Any) -> list[AnyMessage]:
    """Return what a crew, an agent or a flow did."""
    if has(output, "tasks_output"):
        return of_target(messages_of(plain(output), "crewai"))
    if not has(output, "agent_role", "raw"):
        return with_answer([], output)
    said = cast("list[Mapping[str, Any]]", plain(output.messages))
    asked = max((index for index, message in enumerate(said) if message.get("role") == "user"), default=-1)
    task = {"description": "", "output_format": "raw", "agent": output.agent_role, "raw": output.raw}
    if not said[asked + 1 :]:
        return [said_by_assistant(output.raw).model_copy(update={"name": output.agent_role})]
    return of_target(messages_of({**task, "messages": said[asked + 1 :]}, "crewai"))


def _usage(used: Any) -> Usage | None:
    return usage_in(
        used,
        input_tokens="prompt_tokens",
        output_tokens="completion_tokens",
        cached_input_tokens="cached_prompt_tokens",
        reasoning_tokens="reasoning_tokens",
    )


FRAMEWORK = Framework(_TITLE, "crewai", "1.15", _adapts, _open, prepare=_prepared)
