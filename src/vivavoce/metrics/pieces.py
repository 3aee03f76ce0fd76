"""Pieces: the parts of a conversation that are judged one by one, and how much of it each judgement sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vivavoce.metrics.config import Scope
from vivavoce.metrics.transcript import CHARACTERS_PER_TOKEN, Transcript


@dataclass(frozen=True, slots=True)
class Piece:
    """Turns `first` up to and not including `last`, of which the last `judged` are judged; the others are context."""

    first: int
    last: int
    judged: int


def cut(transcript: Transcript, scope: Scope, window: int, tokens: int, overlap: int, since: int = 0) -> list[Piece]:
    """Return the pieces of a conversation.

    For each turn: that turn with the ones before it as context, or a window of up to `window` turns that ends with it;
    else the whole. What takes more than `tokens` is cut: a context to its latest turns, a whole conversation into
    pieces that share up to `overlap` turns. A turn that alone takes more is still one piece, for a turn is never cut.
    `since` leaves out the pieces that end with one of the first so many turns; a whole conversation has none of these.
    """
    count = len(transcript.turns)
    if scope == "conversation":
        return list(_split(transcript, tokens, overlap))
    size = count if scope == "turn" else window
    whole = scope == "window"
    pieces: list[Piece] = []
    for last in range(since + 1, count + 1):
        first = _fitting(transcript, max(0, last - size), last, tokens)
        pieces.append(Piece(first, last, last - first if whole else 1))
    return pieces


def _split(transcript: Transcript, tokens: int, overlap: int) -> Iterator[Piece]:
    count, room = len(transcript.turns), _room(transcript, tokens)
    sizes = [transcript.size(turn) for turn in range(count)]
    if sum(sizes) <= room:
        yield Piece(0, count, count)
        return
    first = judged_to = 0
    while True:
        last, used = first, 0
        while last < count and (last == first or used + sizes[last] <= room):
            used += sizes[last]
            last += 1
        if last == judged_to < count:  # the overlap leaves no room for the next turn
            first += 1
            continue
        yield Piece(first, last, last - judged_to)
        if last >= count:
            return
        judged_to = last
        first = max(first + 1, last - overlap)


def _fitting(transcript: Transcript, first: int, last: int, tokens: int) -> int:
    room = _room(transcript, tokens) - transcript.size(last - 1)
    start = last - 1
    while start > first and (room := room - transcript.size(start - 1)) >= 0:
        start -= 1
    return start


def _room(transcript: Transcript, tokens: int) -> int:
    return tokens * CHARACTERS_PER_TOKEN - sum(map(len, transcript.opening))
