"""The outline of a conversation: its parts, the turns of the part that is shown, and those in which words are found."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vivavoce.comparing.text import FoldedText
from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.report.html.content.message import MAX_CHARS
from vivavoce.report.text import one_line
from vivavoce.report.transcript import words_of
from vivavoce.store.runs.rows import RANK, SampleStatus

MAX_TURNS = 100
"""Turns that are shown together, at most."""
MAX_WINDOW_CHARS = 120_000
"""Characters of the turns that are shown together, unless a single turn has more; a message counts `FRAME` besides.

Half of the `ROOM` of a page, so that no text is cut short for the sake of other turns; where nothing can be compressed,
they are about 100 KB on their way to the browser.
"""
FRAME = 100
"""What stands around a message, in characters."""


@dataclass(frozen=True, slots=True)
class Window:
    """The turns from the index `first` up to `end`, which is not among them.

    The window before begins at `before`, None if there is none; the one after has `following` turns. `starts` are the
    first turns of all windows, in order.
    """

    first: int
    end: int
    before: int | None
    following: int
    starts: Sequence[int]


def window(talk: Trajectory, turn: int, *, by_size: bool = True) -> Window:
    """Return the turns that are shown together with a turn, or with the last one if there are fewer.

    Without `by_size` only their number counts, for a page that has no other parts.
    """
    turns = len(talk.turns)
    starts = _starts(talk) if by_size else list(range(0, max(turns, 1), MAX_TURNS))
    place = bisect_right(starts, min(turn, max(turns - 1, 0))) - 1
    end, beyond = [*starts[place + 1 : place + 3], turns, turns][:2]
    return Window(starts[place], end, starts[place - 1] if place else None, beyond - end, starts)


def _starts(talk: Trajectory) -> list[int]:
    """Return the indices of the turns that begin a window; the first of them is 0."""
    starts = [0]
    total = _size(talk.opening)
    for index, turn in enumerate(talk.turns):
        size = _size(turn.messages)
        if index > starts[-1] and (index - starts[-1] >= MAX_TURNS or total + size > MAX_WINDOW_CHARS):
            starts.append(index)
            total = 0
        total += size
    return starts


def _size(messages: Sequence[AnyMessage]) -> int:
    """Return how many characters of some messages a page shows."""
    return sum(map(_char_count, messages))


def _char_count(message: AnyMessage) -> int:
    char_count = min(len(words_of(message)), MAX_CHARS["data" if isinstance(message, ToolMessage) else "speech"])
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    return FRAME + char_count + sum(min(len(call.function.arguments), MAX_CHARS["data"]) for call in calls)


MAX_MATCHES = 50
"""Turns with the words that are looked for that are listed."""
_WIDTH = 80
_SCAN_CHARS = 1_000
"""Characters that are looked at for them."""
_BEFORE = 30
"""Characters that are shown before the words that are looked for."""


@dataclass(frozen=True, slots=True)
class OutlineRow:
    """A turn in the outline, counted from 0; `state` is that of its grades, None where nothing graded it.

    `session` is its session in words, empty where the conversation is a single one.
    """

    turn: int
    words: str
    state: SampleStatus | None
    session: str = ""


@dataclass(frozen=True, slots=True)
class FoundWords:
    """The turns that hold some words: the first of them as rows, and all of them by index."""

    words: str
    rows: list[OutlineRow]
    turns: frozenset[int]


@dataclass(frozen=True, slots=True)
class OutlinePart:
    """The turns that stand on one page, from the index `first` to `last`, and how many of them are in which state.

    Only the part that is shown has a row for each turn: a page with all turns of a long conversation would take longer
    to draw than it takes to choose a part.
    """

    first: int
    last: int
    states: Sequence[tuple[SampleStatus, int]]
    rows: list[OutlineRow]


def outline(talk: Trajectory, states: Sequence[SampleStatus | None], window: Window) -> list[OutlinePart]:
    """Return the parts of a conversation in order; a part counts its worst states first."""
    ends = [*window.starts[1:], len(talk.turns)]
    return [_part(talk, states, first, end, window) for first, end in zip(window.starts, ends, strict=True)]


def _part(talk: Trajectory, states: Sequence[SampleStatus | None], first: int, end: int, window: Window) -> OutlinePart:
    counts = Counter(states[first:end])
    rows = (
        OutlineRow(
            turn.index, one_line(next(_texts(turn), "")[:_SCAN_CHARS], _WIDTH), states[turn.index], _session(turn)
        )
        for turn in talk.turns[first:end]
    )
    state_counts: list[tuple[SampleStatus, int]] = [(state, counts[state]) for state in RANK if counts[state]]
    return OutlinePart(first, end - 1, state_counts, list(rows) if first == window.first else [])


def found_words(talk: Trajectory, sought: str, states: Sequence[SampleStatus | None]) -> FoundWords:
    """Return the turns with some words, in any case and encoding, in a message or in the arguments of a tool call."""
    rows: list[OutlineRow] = []
    for place, turn in enumerate(talk.turns):
        folded = next((folded for folded in map(FoldedText, _texts(turn)) if folded.contains(sought)), None)
        if folded is not None:
            text, span = folded.text, folded.find(sought)
            start = max((text.index(sought) if span is None else span.start) - _BEFORE, 0)
            words = one_line(("… " if start else "") + text[start : start + _SCAN_CHARS], _WIDTH)
            rows.append(OutlineRow(turn.index, words, states[place], _session(turn)))
    return FoundWords(sought, rows[:MAX_MATCHES], frozenset(row.turn for row in rows))


def _texts(turn: Turn) -> Iterator[str]:
    for message in turn.messages:
        yield words_of(message)
        if message.name and message.role == "assistant":
            yield message.name
        for call in (message.tool_calls or ()) if isinstance(message, AIMessage) else ():
            yield f"{call.name}({call.function.arguments})"


def _session(turn: Turn) -> str:
    return "" if turn.mark is None else one_line(turn.mark.label, _WIDTH)
