"""Entries into the tables: all of a batch in one transaction, and if one of them is refused, the others alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DataError, IntegrityError

from vivavoce.errors import StoreError
from vivavoce.records.run import AttemptKey
from vivavoce.store.browse.status import AttemptFacts, StatusRow, facts_of, status_rows, tags_of
from vivavoce.store.database import schema
from vivavoce.store.database.database import for_writing, is_duplicate, meaning
from vivavoce.store.database.insert import Row, insert_rows
from vivavoce.store.database.text import text_for
from vivavoce.store.runs.replacing import set_aside, take_over
from vivavoce.store.runs.rows import AttemptCells, Entry, ScoreCells, TurnCells

_ATTEMPTS = ("id", *AttemptCells._fields)
_TURNS = ("attempt_id", *TurnCells._fields)
_SCORES = ("attempt_id", *ScoreCells._fields)
_UNREAD = ("attempt_id", "grading_id")


class Committer:
    """Commits the entries of one run; `ids` gives the numbers of new attempts, `place` names the store in errors.

    With `replaces`, an attempt takes the place of the one that the store has, which is put aside.
    """

    def __init__(self, place: str, run_id: str, ids: Iterator[int], *, replaces: bool = False) -> None:
        self._place = place
        self._run_id = run_id
        self._ids = ids
        self._replaces = replaces
        self.stored = 0

    def store(self, connection: Connection, batch: Sequence[Entry]) -> None:
        """Commit every entry that the database takes.

        Raises:
            StoreError: it refused one; the others of the batch are stored.
        """
        try:
            self._commit(for_writing(connection), batch)
        except (UnicodeEncodeError, DataError):
            text = text_for(connection.dialect)
            plainer = [entry.with_texts(text) for entry in batch]
            if plainer == batch:
                raise
            self.store(connection, plainer)
        except (IntegrityError, StoreError) as error:
            if len(batch) == 1:
                raise StoreError(f"{self._place}: {batch[0].title} is refused: {_why(error)}") from error
            self._store_one_by_one(connection, batch)

    def _store_one_by_one(self, connection: Connection, batch: Sequence[Entry]) -> None:
        """Store the others if some entries of a batch are refused; raise the first refusal."""
        refusals: list[StoreError] = []
        for entry in batch:
            try:
                self.store(connection, [entry])
            except StoreError as error:
                refusals.append(error)
        if refusals:
            raise refusals[0]

    def _commit(self, connection: Connection, batch: Sequence[Entry]) -> None:
        attempts: list[Row] = []
        turns: list[Row] = []
        scores: list[Row] = []
        unread: list[Row] = []
        standings: list[StatusRow] = []
        replaced: list[tuple[int, int]] = []
        with connection.begin():
            for entry in batch:
                number, facts = (
                    (next(self._ids), facts_of(entry.attempt, len(entry.turns)))
                    if entry.attempt
                    else self._known(connection, entry.key)
                )
                if entry.attempt and self._replaces:
                    before = set_aside(connection, self._run_id, entry.key)
                    replaced += [] if before is None else [(before, number)]
                if entry.attempt:
                    attempts.append((number, *entry.attempt))
                    unread.append((number, ""))
                turns += [(number, *row) for row in entry.turns]
                scores += [(number, *row) for row in entry.scores]
                standings += status_rows(number, facts, entry.scores)
                unread += [(number, grading) for grading in {row.grading_id for row in entry.scores if row.reason}]
            insert_rows(connection, schema.attempts, _ATTEMPTS, attempts)
            for before, number in replaced:
                take_over(connection, before, number)
            insert_rows(connection, schema.turns, _TURNS, turns)
            insert_rows(connection, schema.scores, _SCORES, scores)
            insert_rows(connection, schema.sample_index, StatusRow._fields, standings)
            insert_rows(connection, schema.unread, _UNREAD, unread)
        self.stored += len(batch)

    def _known(self, connection: Connection, key: AttemptKey) -> tuple[int, AttemptFacts]:
        """Return the number of an attempt in the store, and its facts for lists."""
        a, t = schema.attempts.c, schema.turns.c
        length = select(func.count()).select_from(schema.turns).where(t.attempt_id == a.id).scalar_subquery()
        known = (a.id, a.position, a.seconds, a.sample, a.usage, a.test, a.failure)
        found = select(*known, length.label("length")).where(
            a.run_id == self._run_id,
            a.sample_id == key.sample_id,
            a.target == key.target,
            a.trial == key.trial,
        )
        row = connection.execute(found).first()
        if row is None:
            raise StoreError("the run has no such attempt")
        facts = AttemptFacts(
            position=row.position,
            turns=row.length,
            seconds=row.seconds,
            tags=tags_of(row.sample),
            target=key.target,
            trial=key.trial,
            usage=row.usage,
            test=row.test,
            failure=row.failure,
        )
        return row.id, facts


def _why(error: IntegrityError | StoreError) -> str:
    if isinstance(error, StoreError):
        return str(error)
    return (
        "it is already in the store; is another process working on this run?" if is_duplicate(error) else meaning(error)
    )
