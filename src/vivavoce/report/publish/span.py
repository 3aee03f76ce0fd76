"""A conversation as the spans of a trace: one for the whole, and one in it for each turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vivavoce.messages import AIMessage, AnyMessage, HumanMessage
from vivavoce.records.score import Usage, to_number
from vivavoce.report.publish.conversation import Conversation

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trace; times are seconds since the epoch, `given` and `made` messages in OpenAI's shape."""

    trace: str
    id: str
    parent: str | None
    name: str
    start: float
    end: float
    given: list[Message]
    made: list[Message]
    usage: Usage | None = None
    failure: str | None = None


def spans(one: Conversation) -> Iterator[Span]:
    """Yield the spans of a conversation in a new trace; turns without a time stand where the last one ended.

    The span of the whole has every message, so that who reads the trace has the conversation without its turns.
    """
    attempt, held = one.outcome.attempt, one.outcome.attempt.trajectory
    turns: list[Span] = []
    at = attempt.started_at
    for turn in held.turns:
        start = turn.started_at or at
        at = start + (turn.seconds or 0.0)
        given, made = _split(turn.messages)
        name, failed = f"turn {to_number(turn.index)}", turn.failure and turn.failure.message
        turns.append(
            Span(one.trace, one.span_of(turn.index), one.root, name, start, at, given, made, turn.usage, failed)
        )
    failed = attempt.failure and attempt.failure.message
    answered = bool(turns[-1].made if turns else _split(held.opening)[1])
    messages = [message.to_dict() for message in held.messages]
    before = len(messages) - answered
    end = max(at, attempt.started_at + (held.seconds or 0.0))
    name = attempt.key.sample_id
    yield Span(
        one.trace, one.root, None, name, attempt.started_at, end, messages[:before], messages[before:], None, failed
    )
    yield from turns


def _split(messages: Sequence[AnyMessage]) -> tuple[list[Message], list[Message]]:
    """Return what is said to the target and what it says and does, from its first message on."""
    first = next((at for at, one in enumerate(messages) if isinstance(one, AIMessage)), len(messages))
    if not any(isinstance(one, HumanMessage) for one in messages[:first]):
        first = next((at + 1 for at, one in enumerate(messages) if isinstance(one, HumanMessage)), first)
    return [one.to_dict() for one in messages[:first]], [one.to_dict() for one in messages[first:]]
