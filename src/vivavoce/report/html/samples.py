"""The samples of a run as rows of its page: the state of each, the reason, and the columns that a reader chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, cast, get_args

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.records.details import dollars
from vivavoce.records.run import Grading
from vivavoce.records.score import to_number
from vivavoce.report.details import score_number
from vivavoce.report.html.plots import Strip, strip
from vivavoce.report.text import one_line, span
from vivavoce.report.verdict import headline
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.store.browse.filter import NUMBERS
from vivavoce.store.browse.listing import SampleEntry, ScoreEntry, TurnScore
from vivavoce.store.runs.rows import SampleStatus, status_of, worst_of

GRADERS = 3
"""Graders that have a column of their own where none was chosen."""

Fact = Literal["turns", "seconds", "tokens", "cost", "trial", "target", "tag"]

FACTS: Mapping[Fact, str] = {
    "turns": "Turns",
    "seconds": "Took",
    "tokens": "Tokens",
    "cost": "Cost",
    "trial": "Trial",
    "target": "Target",
    "tag": "Tags",
}


class Column(NamedTuple):
    """A column: a grader, or a fact of each conversation where `fact` is set; `key` is its name in an address."""

    key: str
    name: str
    fact: Fact | None = None

    @property
    def head(self) -> str:
        """What stands above it."""
        return one_line(self.name, 18) if self.fact is None else FACTS[self.fact]

    @property
    def sort(self) -> str | None:
        """The order that a click on its head asks for, None where it has none."""
        return self.name if self.fact is None or self.fact in NUMBERS else None

    @property
    def highest_first(self) -> bool:
        """Whether the first click sorts from the highest value: of what a conversation took, that is of interest."""
        return self.fact in ("turns", "seconds", "tokens", "cost")

    @property
    def is_text(self) -> bool:
        """Whether it holds words, not numbers."""
        return self.fact in ("turns", "target", "tag")

    def cell(self, entry: SampleEntry) -> str:
        """Return what it says of a conversation."""
        match self.fact:
            case None:
                return next((score_number(score) for score in entry.scores if score.name == self.name), "") or "–"
            case "seconds":
                return span(entry.seconds)
            case "turns":
                return str(entry.turns)
            case "tokens":
                return "–" if entry.tokens is None else f"{entry.tokens:,}"
            case "cost":
                return "–" if entry.cost is None else dollars(entry.cost)
            case "trial":
                return str(to_number(entry.trial))
            case "target":
                return safe(entry.target)
            case "tag":
                return safe(", ".join(map(str, entry.tags))) or "–"


def usual_columns(summary: Summary, grading: Grading) -> list[Column]:
    """Return the columns where none was chosen: turns, a few graders with the headline first, and time."""
    graders = [column for column in all_columns(summary, grading) if column.fact is None]
    return [_fact("turns"), *graders[:GRADERS], _fact("seconds")]


def all_columns(summary: Summary, grading: Grading) -> list[Column]:
    """Return every column that can be chosen: the graders, the headline first, and the facts."""
    first = headline(summary, grading)
    graders = [*([first.name] if first else []), *(grader.name for grader in summary.graders)]
    names = list(dict.fromkeys(graders))
    return [*(Column(f'"{name}"' if name in FACTS else name, name) for name in names), *map(_fact, get_args(Fact))]


def chosen_columns(requested_names: Sequence[str], known: Sequence[Column]) -> list[Column]:
    """Return the columns that an address names, each as a parameter or several with commas between them.

    Raises:
        UsageError: there is no such column.
    """
    of, columns = {column.key: column for column in known}, list[Column]()
    for text in requested_names:
        for key in [text] if text in of else [part.strip() for part in text.split(",")]:
            if key and key not in of:
                raise UsageError(f"no column '{one_line(key, 80)}'{did_you_mean(key, of)}")
            columns += [of[key]] if key else []
    return list(dict.fromkeys(columns))


def _fact(name: str) -> Column:
    return Column(name, name, cast("Fact", name))


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
        cells=[column.cell(entry) for column in columns],
    )


def _why(entry: SampleEntry) -> str:
    """Return the error, else the reason of the lowest grade."""
    if entry.failure is not None:
        return one_line(str(entry.failure), WHY)
    for score in entry.scores:
        if score.state == "error":
            return one_line(f"{score.name}: {score.failure or score.reason or 'error'}", WHY)
    grades = [
        (score.passed is not False, score.value, place, score)
        for place, score in enumerate(entry.scores)
        if score.value is not None
    ]
    if not grades:
        return one_line(next((score.reason or "" for score in entry.scores), ""), WHY)
    lowest = min((grade for grade in grades if grade[3].kind == "grade"), default=grades[0])[3]
    return one_line(_score_line(lowest), WHY)


def _score_line(score: ScoreEntry) -> str:
    bad = [str(to_number(turn.turn)) for turn in score.turns if _state(turn) == "fail"]
    if bad:
        turns = f"turn{'s' * (len(bad) > 1)} {', '.join(bad[:12])}{'…' * (len(bad) > 12)} of {len(score.turns)}"
        return f"{score.name}: {turns} not passed"
    return f"{score.name}: {score.reason}" if score.reason else ""


def _state(turn: TurnScore) -> SampleStatus:
    return status_of(turn.state, turn.passed)


def _strip(entry: SampleEntry) -> Strip | None:
    graded: dict[int, list[SampleStatus]] = {}
    for score in entry.scores:
        for turn in score.turns:
            graded.setdefault(turn.turn, []).append(_state(turn))
    if not graded:
        return None
    return strip([worst_of(graded.get(turn, ())) for turn in range(max(entry.turns, max(graded) + 1))])
