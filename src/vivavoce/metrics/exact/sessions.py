"""The turns of a conversation of several sessions, each with its session and user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vivavoce.comparing.text import FoldedText, is_blank
from vivavoce.conversation import mark_of, split_turns
from vivavoce.messages import AnyMessage
from vivavoce.metrics.exact.speakers import Speaker, Utterance
from vivavoce.metrics.measuring import Part
from vivavoce.session_mark import SessionMark


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """A turn of a session; `index` counts from 0."""

    index: int
    mark: SessionMark
    messages: Sequence[AnyMessage]

    def said(self, speaker: Speaker) -> list[Utterance]:
        """Return the messages of one side that have words."""
        return [
            Utterance(self.index, one.text) for one in self.messages if one.role == speaker and not is_blank(one.text)
        ]


def session_turns(part: Part) -> list[SessionTurn]:
    """Return the turns of the whole conversation that a part is of, none where it has no sessions."""
    turns = split_turns(part.metric_input.messages)[1]
    found = ((index, mark_of(turn), turn) for index, turn in enumerate(turns))
    return [SessionTurn(index, mark, turn) for index, mark, turn in found if mark is not None]


def is_in(part: Part, turn: SessionTurn) -> bool:
    """Say whether a turn is one that is measured."""
    return part.first <= turn.index < part.first + len(part.turns)


def place_in(utterances: Iterable[Utterance], phrase: str) -> tuple[Utterance, int, int] | None:
    """Return the first message that contains a phrase as whole words, and where in it; None where none does."""
    for utterance in utterances:
        if (span := FoldedText(utterance.text).find(phrase, whole=True)) is not None:
            return utterance, span.start, span.end
    return None
