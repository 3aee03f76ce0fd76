"""The messages of one side, with the numbers of their turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from vivavoce.comparing.text import is_blank
from vivavoce.messages import AnyMessage
from vivavoce.metrics.measuring import Part
from vivavoce.metrics.result import Evidence

Speaker = Literal["assistant", "user"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)

LONGEST_QUOTE = 240
"""Characters of a message that are shown as evidence."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """The words of one message; `turn` counts from 0, None for what precedes the first user message."""

    turn: int | None
    text: str

    def quote(self, start: int = 0, end: int | None = None) -> Evidence:
        """Return a passage as evidence, cut to a length that can be read."""
        last = min(len(self.text) if end is None else end, start + LONGEST_QUOTE)
        return Evidence(text=self.text[start:last], turn=self.turn, verified=True)


def numbered(part: Part) -> list[tuple[int | None, AnyMessage]]:
    """Return every message with the number of its turn, None for what precedes the first user message."""
    opening: list[tuple[int | None, AnyMessage]] = [(None, message) for message in part.opening]
    return opening + [(part.first + i, message) for i, turn in enumerate(part.turns) for message in turn]


def utterances(part: Part, speaker: Speaker) -> list[Utterance]:
    """Return the messages of one side in order, without those that have no words."""
    return [
        Utterance(turn, message.text)
        for turn, message in numbered(part)
        if message.role == speaker and not is_blank(message.text)
    ]
