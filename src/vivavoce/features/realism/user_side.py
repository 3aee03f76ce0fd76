"""`UserSide`: what the user of one conversation says, which is all that realism looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from vivavoce.messages import AnyMessage, split_turns
from vivavoce.metrics.exact.language import language_of

READ = 2000
"""Characters of a conversation from which its language is told."""


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
        """Whether the conversation is in the half that nothing is fitted to, told by what it came of: each time alike.

        Not by its content: where many users say the same, all of them would be in one half, which then differs.
        """
        return _hash(self.cluster) % 2 == 1

    @cached_property
    def language(self) -> str | None:
        """The code of the language that the user writes, None where it cannot be told."""
        return language_of(" ".join(self.messages)[:READ])


def user_side(name: str, messages: Sequence[AnyMessage], cluster: str | None = None) -> UserSide | None:
    """Return the user's side of a conversation, None where the user says nothing in words."""
    _, turns = split_turns(messages)
    said: list[str] = []
    before: list[str] = []
    answer = next(
        (message.text for message in reversed(messages[: _first_user(messages)]) if message.role == "assistant"), ""
    )
    for turn in turns:
        if turn[0].text.strip():
            said.append(turn[0].text)
            before.append(answer)
        answer = next((one.text for one in reversed(turn) if one.role == "assistant" and one.text.strip()), "")
    if not said:
        return None
    spoken = [message for message in messages if message.role in ("user", "assistant") and message.text.strip()]
    side = UserSide(name, cluster or name, tuple(said), tuple(before), (spoken[-1].role, spoken[-1].text))
    if cluster is not None or len(said) < 2:
        return side
    return UserSide(name, side.content, side.messages, side.before, side.last)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


def _first_user(messages: Sequence[AnyMessage]) -> int:
    return next((place for place, message in enumerate(messages) if message.role == "user"), len(messages))
