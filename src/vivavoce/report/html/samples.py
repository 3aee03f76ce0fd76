"""The samples of a run as rows of its page: the state of each, the reason, and the states of its turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vivavoce.records.score import to_number
from vivavoce.report.html.columns import Column
from vivavoce.report.html.plots import Strip, strip
from vivavoce.report.text import one_line
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import SampleEntry, ScoreEntry, TurnScore
from vivavoce.store.browse.status import SampleStatus, status_of, worst_of

WHY = 160
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """A conversation in a list; `cells` has what each column says of it."""

    entry: SampleEntry
    link: str
    state: SampleStatus
    why: str
    strip: Strip | None
    cells: list[str]

    @property
    def title(self) -> str:
        """Its title, or its name if it has no title."""
        return safe(self.entry.title)


def line(entry: SampleEntry, link: str, columns: Sequence[Column]) -> Line:
    """Return the line of a conversation, with what some columns say of it."""
    return Line(
        entry=entry,
        link=link,
        state=entry.status,
        why=_why(entry),
        strip=_strip(entry),
        cells=[one.cell(entry) for one in columns],
    )


def _why(entry: SampleEntry) -> str:
    """Return the error, else the reason of the lowest grade."""
    if entry.failure is not None:
        return one_line(str(entry.failure), WHY)
    for one in entry.scores:
        if one.state == "error":
            return one_line(f"{one.name}: {one.failure or one.reason or 'error'}", WHY)
    grades = [
        (one.passed is not False, one.value, place, one)
        for place, one in enumerate(entry.scores)
        if one.value is not None
    ]
    if not grades:
        return one_line(next((one.reason or "" for one in entry.scores), ""), WHY)
    lowest = min((one for one in grades if one[3].kind == "grade"), default=grades[0])[3]
    return one_line(_score_line(lowest), WHY)


def _score_line(one: ScoreEntry) -> str:
    bad = [str(to_number(turn.turn)) for turn in one.turns if _state(turn) == "fail"]
    if bad:
        turns = f"turn{'s' * (len(bad) > 1)} {', '.join(bad[:12])}{'…' * (len(bad) > 12)} of {len(one.turns)}"
        return f"{one.name}: {turns} not passed"
    return f"{one.name}: {one.reason}" if one.reason else ""


def _state(turn: TurnScore) -> SampleStatus:
    return status_of(turn.state, turn.passed)


def _strip(entry: SampleEntry) -> Strip | None:
    graded: dict[int, list[SampleStatus]] = {}
    for one in entry.scores:
        for turn in one.turns:
            graded.setdefault(turn.turn, []).append(_state(turn))
    if not graded:
        return None
    return strip([worst_of(graded.get(turn, ())) for turn in range(max(entry.turns, max(graded) + 1))])
