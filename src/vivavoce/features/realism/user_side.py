"""`UserSide`: what the user of one conversation says, which is all that realism looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from vivavoce.messages import AnyMessage, split_turns
from vivavoce.metrics.exact.language import language_of

MAX_CHARS = 2000
"""Characters of a conversation that its language is detected from."""


@dataclass(frozen=True)
class UserSide:
    """The messages of a user, in order, and the answer that stood before each.

    `cluster` names what it came of: conversations of one sample, and those in which the user says exactly the same in
    two or more messages, are not independent. `last` is what was said last, and by whom.
    """

    name: str
    cluster: str
    messages: tuple[str, ...]
    before: tuple[str, ...]
    last: tuple[str, str]

    @cached_property
    def content(self) -> str:
        """A hash of what the user says."""
        return f"{_hash(chr(30).join(self.messages)):016x}"

    @property
    def held_back(self) -> bool:
        """Whether the conversation is in the half that nothing is fitted to. The same source gives the same half.

        Not by its content: where many users say the same, all of them would be in one half, which then differs.
        """
        return _hash(self.cluster) % 2 == 1

    @cached_property
    def language(self) -> str | None:
        """The code of the language that the user writes, None where it is unknown."""
        return language_of(" ".join(self.messages)[:MAX_CHARS])


def user_side(name: str, messages: Sequence[AnyMessage], cluster: str | None = None) -> UserSide | None:
    """Return the user's side of a conversation, None where the user says nothing in words."""
    _, turns = split_turns(messages)
    user_messages: list[str] = []
    before: list[str] = []
    answer = next(
        (message.text for message in reversed(messages[: _first_user(messages)]) if message.role == "assistant"), ""
    )
    for turn in turns:
        if turn[0].text.strip():
            user_messages.append(turn[0].text)
            before.append(answer)
        answer = next(
            (message.text for message in reversed(turn) if message.role == "assistant" and message.text.strip()), ""
        )
    if not user_messages:
        return None
    with_words = [message for message in messages if message.role in ("user", "assistant") and message.text.strip()]
    side = UserSide(
        name, cluster or name, tuple(user_messages), tuple(before), (with_words[-1].role, with_words[-1].text)
    )
    if cluster is not None or len(user_messages) < 2:
        return side
    return UserSide(name, side.content, side.messages, side.before, side.last)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def _first_user(messages: Sequence[AnyMessage]) -> int:
    return next((place for place, message in enumerate(messages) if message.role == "user"), len(messages))
