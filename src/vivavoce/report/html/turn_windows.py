"""Which turns of a long conversation stand on one page: so many at most, and fewer where much was said in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.messages import AIMessage, AnyMessage, ToolMessage
from vivavoce.records.trajectory import Trajectory
from vivavoce.report.html.content.written import LONGEST
from vivavoce.report.transcript import words_of

SHOWN = 100
"""Turns that are shown together, at most."""
AT_ONCE = 120_000
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
    starts = _starts(talk) if by_size else list(range(0, max(turns, 1), SHOWN))
    place = bisect_right(starts, min(turn, max(turns - 1, 0))) - 1
    end, beyond = [*starts[place + 1 : place + 3], turns, turns][:2]
    return Window(starts[place], end, starts[place - 1] if place else None, beyond - end, starts)


def _starts(talk: Trajectory) -> list[int]:
    """Return the indices of the turns that begin a window; the first of them is 0."""
    starts = [0]
    held = _size(talk.opening)
    for index, turn in enumerate(talk.turns):
        size = _size(turn.messages)
        if index > starts[-1] and (index - starts[-1] >= SHOWN or held + size > AT_ONCE):
            starts.append(index)
            held = 0
        held += size
    return starts


def _size(messages: Sequence[AnyMessage]) -> int:
    """Return how many characters of some messages a page shows."""
    return sum(map(_shown, messages))


def _shown(message: AnyMessage) -> int:
    said = min(len(words_of(message)), LONGEST["data" if isinstance(message, ToolMessage) else "speech"])
    calls = (message.tool_calls or ()) if isinstance(message, AIMessage) else ()
    return FRAME + said + sum(min(len(one.function.arguments), LONGEST["data"]) for one in calls)
