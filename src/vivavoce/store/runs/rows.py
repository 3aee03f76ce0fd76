"""The rows of an attempt in the tables, by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import NamedTuple, TypeVar

from vivavoce.records.run import AttemptKey
from vivavoce.records.score import State, conversation_label
from vivavoce.store.database.database import AnyRow, columns_of


class AttemptCells(NamedTuple):
    """A row of `attempts` without its number."""

    run_id: str
    sample_id: str
    target: str
    trial: int
    position: int
    scenario: str
    session_id: str | None
    started_at: float
    seconds: float | None
    sample: str
    opening: str | None
    state: str | None
    failure: str | None
    usage: str | None
    test: str | None
    stratum: int | None = None
    probability: float | None = None


class TurnCells(NamedTuple):
    """A row of `turns` without the number of its attempt."""

    idx: int
    started_at: float | None
    seconds: float | None
    messages: str
    usage: str | None
    failure: str | None


class ScoreCells(NamedTuple):
    """A row of `scores` without its number and that of its attempt."""

    grading_id: str
    kind: str
    name: str
    turn: int | None
    turns: int | None
    state: State
    value: float | None
    reason: str | None
    submission: str | None
    ground_truth: str | None
    extra: str | None
    failure: str | None
    usage: str | None
    fingerprint: str | None
    passed: int | None
    raw: str | None
    confidence: float | None
    findings: str | None
    other_evidence: str | None
    settings: str | None


Cells = TypeVar("Cells", AttemptCells, TurnCells, ScoreCells)


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of one transaction; the rows are without the id of the attempt, which comes first in each.

    `attempt` is None if the attempt is already in the store and its id has to be looked up.
    """

    key: AttemptKey
    attempt: AttemptCells | None = None
    turns: list[TurnCells] = field(default_factory=list[TurnCells])
    scores: list[ScoreCells] = field(default_factory=list[ScoreCells])

    @property
    def title(self) -> str:
        """Its name for people."""
        return f"sample '{conversation_label(self.key.sample_id, self.key.trial)}' ({self.key.target})"

    def with_texts(self, change: Callable[[str], str]) -> Entry:
        """Return it with this change applied to every text of its rows."""

        def of(row: Cells) -> Cells:
            return row._make(change(value) if isinstance(value, str) else value for value in row)

        sample_id, target, trial = self.key
        return Entry(
            key=AttemptKey(change(sample_id), change(target), trial),
            attempt=self.attempt and of(self.attempt),
            turns=[of(row) for row in self.turns],
            scores=[of(row) for row in self.scores],
        )


def cells_of(kind: type[Cells], rows: Iterable[AnyRow]) -> list[Cells]:
    """Return rows of a table without their database ids."""
    return [kind._make(_taking(kind, columns_of(row))(row)) for row in rows]


@cache
def _taking(kind: type[NamedTuple], columns: tuple[str, ...]) -> Callable[[AnyRow], Iterable[object]]:
    """Return a function that reads such cells from a row of these columns, twice as fast as by name."""
    return itemgetter(*(columns.index(name) for name in kind._fields))
