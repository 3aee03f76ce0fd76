"""`Planted`: a recorded conversation with a mistake that was put in by code, and what is true of that mistake."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from vivavoce.messages import AnyMessage, ToolCall
from vivavoce.metrics.judged.first_failure import Kind, Whose
from vivavoce.validation import copy_with


@dataclass(frozen=True, slots=True)
class Mistake:
    """The message, an index from 0, in which a mistake is made, its turn, whose it is and of what kind."""

    message: int
    turn: int | None
    whose: Whose
    kind: Kind


@dataclass(frozen=True, slots=True)
class Planted:
    """A conversation with a defect: the root of its failure, and the point of no return, often the same."""

    messages: tuple[AnyMessage, ...]
    root: Mistake
    no_return: Mistake


Operator = Callable[[list[AnyMessage], Random], Planted | None]
"""Plants a defect in messages that it may change, or finds no place for it."""


def build_planted(messages: Sequence[AnyMessage], index: int, whose: Whose, kind: Kind) -> Planted:
    """Return a conversation whose root and point of no return are one message."""
    root = mistake(messages, index, whose, kind)
    return Planted(tuple(messages), root, root)


def mistake(messages: Sequence[AnyMessage], index: int, whose: Whose, kind: Kind) -> Mistake:
    """Return a mistake in a message, with the turn that this message is in."""
    turn = sum(map(by_user, messages[: index + 1])) - 1
    return Mistake(index, None if turn < 0 else turn, whose, kind)


def last(messages: Sequence[AnyMessage], predicate: Callable[[AnyMessage], bool]) -> int:
    """Return the index of the last message that is wanted, -1 where there is none."""
    return next((i for i in range(len(messages) - 1, -1, -1) if predicate(messages[i])), -1)


def by_user(message: AnyMessage) -> bool:
    """Say whether the user says it."""
    return message.role == "user"


def calls_of(message: AnyMessage) -> Sequence[ToolCall]:
    """Return the calls that a message makes."""
    return (message.role == "assistant" and message.tool_calls) or ()


def replies_in(messages: Sequence[AnyMessage]) -> list[int]:
    """Return the indices of the messages with which the assistant ends its turns, if they are plain text."""
    return [
        index
        for index, message in enumerate(messages)
        if is_reply(message) and (index + 1 == len(messages) or by_user(messages[index + 1]))
    ]


def is_reply(message: AnyMessage) -> bool:
    """Say whether the assistant says something in plain text and calls no tool."""
    return (
        message.role == "assistant"
        and bool(message.text)
        and isinstance(message.content, str)
        and not calls_of(message)
    )


def says(message: AnyMessage, text: str) -> AnyMessage:
    """Return a message with another text."""
    return copy_with(message, {"content": text})
