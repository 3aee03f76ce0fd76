"""Conversations of users who write in a known way."""

from __future__ import annotations

import random
from collections.abc import Sequence

from vivavoce.features.realism.reading import UserSides
from vivavoce.features.realism.user_side import UserSide, user_side
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage

WORDS = (
    *(
        "order",
        "lamp",
        "chair",
        "refund",
        "late",
        "broken",
        "the",
        "a",
        "my",
        "it",
        "is",
        "was",
        "for",
        "to",
        "of",
        "and",
    ),
    *("with", "that", "this", "not", "i", "we", "from", "on", "at"),
)


def talk(*messages: str, answer: str = "What is the number of your order?") -> list[AnyMessage]:
    """Return a conversation in which the assistant always answers the same."""
    return [message for text in messages for message in (HumanMessage(content=text), AIMessage(content=answer))]


def side(*messages: str, answer: str = "What is the number of your order?") -> UserSide:
    """Return the user's side of such a conversation, which is called by its first message."""
    user = user_side(messages[0], talk(*messages, answer=answer))
    assert user is not None
    return user


def users(name: str, number: int, seed: int = 1, words: float = 8.0, turns: Sequence[int] = (1, 2, 3, 4)) -> UserSides:
    """Return users who write about this many words a message, in English."""
    draw = random.Random(seed)
    sides: list[UserSide] = []
    for place in range(number):
        messages = [_write_message(draw, words) for _ in range(draw.choice(turns))]
        user = user_side(f"{name}-{place}", talk(*messages))
        assert user is not None
        sides.append(user)
    return UserSides(name, sides)


def _write_message(draw: random.Random, words: float) -> str:
    length = max(1, round(draw.gauss(words, words / 4)))
    return f"{draw.choice(('I want', 'please', 'can you', 'hello'))} {' '.join(draw.choices(WORDS, k=length))}"
