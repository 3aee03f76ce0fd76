"""`Writer`: conversations and scores of a run in progress, committed together."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, Table, delete, func, insert, select, update
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from vivavoce.errors import NotFound, StoreError
from vivavoce.records.label import Remarks
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.store.audit import note
from vivavoce.store.database import schema
from vivavoce.store.database.database import Database, Values, for_writing, insert_rows, is_duplicate, meaning
from vivavoce.store.database.group_commit import GroupCommit, Items
from vivavoce.store.database.schema import (
    attempts,
    comments,
    decisions,
    labels,
    passages,
    queue_items,
    replaced,
    runs,
    sample_index,
    scores,
    text_for,
    turns,
    unread,
)
from vivavoce.store.runs.naming import attempt_ids
from vivavoce.store.runs.rows import (
    AttemptCells,
    AttemptFacts,
    Encoder,
    Entry,
    ScoreCells,
    StatusRow,
    TurnCells,
    facts_of,
    status_rows,
    tagged,
    tags_of,
)

_ASIDE = -1
"""The trial of an attempt on its way out, which no attempt has."""


class Replaced(NamedTuple):
    """A replaced attempt; `rows` are its rows in the store, by the names of the tables."""

    key: AttemptKey
    replaced_at: float
    rows: dict[str, list[dict[str, Any]]]


def set_aside(connection: Connection, run_id: str, key: AttemptKey) -> int | None:
    """Make room for an attempt: keep an existing one with its key as `replaced`, and return its number.

    Only its row stays, under another key, because what people added refers to it until `take_over`. The caller has the
    transaction.
    """
    a = attempts.c
    found = select(a.id).where(
        a.run_id == run_id, a.sample_id == key.sample_id, a.target == key.target, a.trial == key.trial
    )
    old = connection.execute(found).scalar()
    if old is None:
        return None
    rows = {table.name: _rows(connection, table, old) for table in (attempts, turns, scores)}
    values = {"run_id": run_id, **key._asdict(), "replaced_at": time.time(), "rows": json.dumps(rows)}
    connection.execute(insert(replaced).values(values))
    for table in (passages, unread, scores, turns, sample_index):
        connection.execute(delete(table).where(table.c.attempt_id == old))
    connection.execute(update(attempts).where(a.id == old).values(trial=_ASIDE))
    return old


def take_over(connection: Connection, old: int, number: int) -> None:
    """Give a new attempt, by its `number`, what people added to the one that was set aside, and delete that one."""
    for table in (labels, comments, decisions, queue_items):
        connection.execute(update(table).where(table.c.attempt_id == old).values(attempt_id=number))
    connection.execute(delete(attempts).where(attempts.c.id == old))


def replaced_attempts(connection: Connection, run_id: str) -> Iterator[Replaced]:
    """Yield the replaced attempts of a run, oldest first."""
    r = replaced.c
    for row in connection.execute(select(replaced).where(r.run_id == run_id).order_by(r.id)):
        yield Replaced(AttemptKey(row.sample_id, row.target, row.trial), row.replaced_at, json.loads(row.rows))


def _rows(connection: Connection, table: Table, number: int) -> list[dict[str, Any]]:
    own = table.c.id if table is attempts else table.c.attempt_id
    return [dict(row) for row in connection.execute(select(table).where(own == number)).mappings()]


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
        except (UnicodeEncodeError, DataError, OverflowError, IntegrityError, StoreError) as error:
            text = text_for(connection.dialect)
            plainer = [entry.with_texts(text) for entry in batch]
            if plainer != batch:
                self.store(connection, plainer)
            elif len(batch) > 1:
                self._store_one_by_one(connection, batch)
            else:
                raise StoreError(f"{self._place}: {batch[0].title} was rejected: {_why(error)}") from error

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
        attempts: list[Values] = []
        turns: list[Values] = []
        scores: list[Values] = []
        unread: list[Values] = []
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


def _why(error: Exception) -> str:
    if isinstance(error, IntegrityError) and is_duplicate(error):
        return "it is already in the store; is another process working on this run?"
    return meaning(error) if isinstance(error, DBAPIError) else str(error)


def remark(connection: Connection, run_id: str, change: Remarks, actor: str) -> None:
    """Change the title, the notes or the tags of a run; the caller commits.

    Raises:
        NotFound: there is no run of that id.
    """
    r = runs.c
    found = connection.execute(select(r.title, r.notes, r.tags).where(r.id == run_id)).first()
    if found is None:
        raise NotFound("run", run_id)
    given = change.model_dump(exclude_unset=True)
    values = {name: given[name] or None for name in ("title", "notes") if name in given}
    if "tags" in given:
        values["tags"] = "".join(map(tagged, given["tags"] or ())) or None
    changed = {name: value for name, value in values.items() if value != getattr(found, name)}
    if changed:
        connection.execute(update(runs).where(r.id == run_id).values(changed))
        note(connection, actor, "run.remark", run_id, {name: given[name] or None for name in changed})


OUTCOMES = Items("outcome", "outcomes", thread="vivavoce-store", closed="this writer is closed")


class OutcomeWriter:
    """Takes outcomes on the event loop and commits them in a thread of its own, in the order of `put`.

    After an error nothing more is written, and every call raises it: what was not stored is never passed over.
    """

    def __init__(self, database: Database, encoder: Encoder, *, replaces: bool = False) -> None:
        self._encoder = encoder
        committer = Committer(database.place, encoder.run_id, attempt_ids(), replaces=replaces)
        self._entries = GroupCommit[Entry](database, committer, OUTCOMES)

    async def put(self, outcome: Outcome) -> None:
        """Queue an outcome; waits while too many are pending.

        Raises:
            StoreError: this outcome cannot be written, or an earlier one could not.
        """
        await self._entries.put(self._encoder.outcome(outcome))

    async def put_scores(self, key: AttemptKey, scores: Mapping[str, Score], reward: Score | None) -> None:
        """Queue new scores of an attempt that is in the store.

        Raises:
            StoreError: as `put`, and later when the store has no such attempt.
        """
        await self._entries.put(self._encoder.scores(key, scores, reward))

    async def drain(self) -> None:
        """Wait until everything put so far is committed.

        Raises:
            StoreError: something could not be written.
        """
        await self._entries.drain()

    async def close(self) -> None:
        """Commit what is left and end the thread; a second call changes nothing.

        Raises:
            StoreError: something could not be written.
        """
        await self._entries.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
