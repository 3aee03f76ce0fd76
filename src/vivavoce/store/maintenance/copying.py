"""Copying one store into another: unchanged rows, run by run, without those that already exist there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, func, insert, select, update

from vivavoce.errors import UsageError
from vivavoce.records.label import Remarks
from vivavoce.records.run import AttemptKey
from vivavoce.store.database.database import Database, for_writing, values_of
from vivavoce.store.database.schema import attempts, gradings, runs, scores, text_for
from vivavoce.store.runs.naming import attempt_ids
from vivavoce.store.runs.reading import Reader
from vivavoce.store.runs.rows import Entry
from vivavoce.store.runs.writer import Committer

COMMIT = 128
"""Attempts that are committed together."""

T = TypeVar("T")
Values = Mapping[str, Any]
"""A row of a table, by the names of its columns."""
Listener = Callable[[str, int, int], None]
"""Called with the run being copied, the number of its attempts that are done, and their total."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: new runs, existing runs that were completed, attempts, and the rest by its names."""

    runs: int
    completed: int
    attempts: int
    replies: int
    labels: int = 0
    comments: int = 0
    decisions: int = 0
    queues: int = 0
    views: int = 0
    calibrations: int = 0
    left_out: tuple[tuple[str, int], ...] = ()
    """What stays in the first store because it belongs to its servers, and how many of each."""


def copy_run(source: Database, target: Database, run_id: str, progress: Listener) -> tuple[bool, int]:
    """Copy a run and its gradings; return whether it is new there, and how many attempts were copied.

    An existing attempt gets its missing scores. After an interruption it continues where it was.

    Raises:
        UsageError: a different run has that id there.
    """
    with source.connected() as connection:
        run = connection.execute(select(runs).where(runs.c.id == run_id)).one()
        sets = connection.execute(select(gradings).where(gradings.c.run_id == run_id)).all()
        count = connection.execute(select(func.count()).where(attempts.c.run_id == run_id)).scalar_one()
    entries = Reader(source, run_id).entries()
    values = [values_of(one) for one in sets]
    return put_run(target, values_of(run), values, entries, lambda done: progress(run_id, done, count))


def put_run(
    target: Database,
    run: Values,
    sets: Sequence[Values],
    entries: Iterator[Entry],
    progress: Callable[[int], None],
    replaced: Set[AttemptKey] = frozenset(),
) -> tuple[bool, int]:
    """Put a run, its gradings and its attempts into a store; return whether it is new there, and how many were put.

    The run and its gradings are given as the values of their rows. `progress` is called with how many of the attempts
    are there. An attempt that is there already gets its missing scores; of those that are to be `replaced`, the one
    that is there is put aside.

    Raises:
        UsageError: a different run has that id there.
    """
    committer = Committer(target.place, run["id"], attempt_ids(), replaces=bool(replaced))
    with target.apart() as connection:
        with for_writing(connection).begin():
            new = _put(connection, target.place, runs, run, "started_at")
            for grading in sets:
                _put(connection, target.place, gradings, grading, "created_at")
        done = 0
        for batch in _batches(entries, COMMIT):
            again = [entry for entry in batch if entry.key in replaced]
            rest = [entry for entry in batch if entry.key not in replaced] if again else batch
            missing = [*again, *_missing(connection, run["id"], rest)]
            connection.rollback()
            if missing:
                committer.store(connection, missing)
            done += len(batch)
            progress(done)
    return new, committer.stored


def _put(connection: Connection, place: str, table: Table, new: Values, born: str) -> bool:
    """Insert a new row; replace an existing one that is not finished.

    Title, notes and tags of a run are copied where there are none.
    """
    found = connection.execute(select(table).where(table.c.id == new["id"])).first()
    if found is None:
        connection.execute(insert(table).values(new))
        return True
    if getattr(found, born) != new[born]:
        raise UsageError(f"a different {table.name.removesuffix('s')} in {place} has the id {new['id']}")
    values = dict(new) if found.finished_at is None else {}
    said = Remarks.model_fields if table is runs else ()
    values |= {name: getattr(found, name) or new[name] for name in said}
    if any(getattr(found, name) != value for name, value in values.items()):
        connection.execute(update(table).where(table.c.id == new["id"]).values(values))
    return False


def _missing(connection: Connection, run_id: str, batch: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the part of each entry that is not there yet."""
    text = text_for(connection.dialect)
    a, s = attempts.c, scores.c
    mine = select(a.id, a.sample_id, a.target, a.trial).where(
        a.run_id == run_id, a.sample_id.in_([entry.key.sample_id for entry in batch])
    )
    number_of = {(row.sample_id, row.target, row.trial): row.id for row in connection.execute(mine)}
    graded = select(s.attempt_id, s.grading_id).where(s.attempt_id.in_(number_of.values())).distinct()
    there = {(row.attempt_id, row.grading_id) for row in connection.execute(graded)}
    for entry in batch:
        number = number_of.get((text(entry.key.sample_id), text(entry.key.target), entry.key.trial))
        if number is None:
            yield entry
        elif new := [row for row in entry.scores if (number, row.grading_id) not in there]:
            yield replace(entry, attempt=None, turns=[], scores=new)


def _batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(islice(items, size)):
        yield batch
