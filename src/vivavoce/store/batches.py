"""`Batches`: what was given to batch services. A question is in one batch at a time, whoever asks it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from vivavoce.records.replies import AskedQuestion, Batch
from vivavoce.records.score import Failure, Usage
from vivavoce.store.database.database import LARGEST, AnyRow, Database, insert_rows, values_of
from vivavoce.store.database.schema import batch_questions, batches, json_text, read_json

ASKED, ANSWERED, FAILED = "asked", "answered", "failed"
_Q = batch_questions.c
_LOST = Failure(blame="judge", kind="http", message="the service returned nothing about it")
_NO_LINE = AskedQuestion("", "", "", FAILED, 0, 0, _LOST, "ask again")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a store, and the questions in them."""

    database: Database

    def claim(self, batch: Batch, keys: Sequence[str]) -> set[str]:
        """Keep a batch that is to be submitted, and return which of its questions are in no other one.

        These are its own from now on; a batch with none is not kept.

        Raises:
            StoreError: the store cannot be written.
        """
        with self.database.writing() as connection:
            free: set[str] = set()
            for some in _parts(keys):
                free |= _claim_questions(connection, batch, some)
            if free:
                connection.execute(insert(batches).values({**_values(batch), "requests": len(free)}))
        return free

    def update(self, batch: Batch) -> None:
        """Replace what is kept of a batch."""
        values = _values(batch)
        with self.database.writing() as connection:
            connection.execute(update(batches).where(batches.c.id == values.pop("id")).values(values))

    def release(self, batch: Batch) -> None:
        """Forget a batch that no service has: its questions may be asked in another one, as if this had not been."""
        with self.database.writing() as connection:
            mine = (_Q.batch_id == batch.id) & (_Q.state == ASKED)
            connection.execute(delete(batch_questions).where(mine, _Q.tries == 1, _Q.usage.is_(None)))
            failure = Failure(blame="judge", kind="http", message="it was in a batch that was not taken")
            again = {"state": FAILED, "failure": json_text(failure), "then": "ask again", "tries": _Q.tries - 1}
            connection.execute(update(batch_questions).where(mine).values(again))
            connection.execute(delete(batches).where(batches.c.id == batch.id))

    def settle(self, batch: Batch, settled: Mapping[str, AskedQuestion]) -> None:
        """Keep that a batch has ended, and what came of its questions; those that were settled before stay as they are.

        What is not settled may be asked again. `usage` is added to what a question used and is in no score.
        """
        with self.database.writing() as connection:
            rows = connection.execute(select(batch_questions).where(_Q.batch_id == batch.id, _Q.state == ASKED)).all()
            changed = [_settle(_question(row), settled.get(row.key, _NO_LINE)) for row in rows]
            if changed:
                by_key = update(batch_questions).where(_Q.key == bindparam("of_key"))
                connection.execute(by_key, [{"of_key": row.pop("key"), **row} for row in map(_row, changed)])
            values = _values(batch)
            connection.execute(update(batches).where(batches.c.id == values.pop("id")).values(values))

    def charged(self, keys: Iterable[str]) -> None:
        """Take note that what questions used is in a score now."""
        with self.database.writing() as connection:
            for some in _parts(keys):
                connection.execute(update(batch_questions).where(_Q.key.in_(some)).values(usage=None))

    def charged_all(self, run_id: str) -> None:
        """Take note that a run has ended, and what its questions used is in its scores."""
        with self.database.writing() as connection:
            mine = (_Q.run_id == run_id) & (_Q.state != ASKED) & _Q.usage.is_not(None)
            connection.execute(update(batch_questions).where(mine).values(usage=None))

    def open(self, identities: Iterable[str]) -> list[Batch]:
        """Return the batches of models that have not ended, the oldest first."""
        mine = batches.c.identity.in_(list(identities)) & batches.c.ended_at.is_(None)
        query = select(batches).where(mine).order_by(batches.c.created_at, batches.c.id)
        with self.database.connected() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def of_run(self, run_id: str) -> list[Batch]:
        """Return the batches that were made for a run, the oldest first."""
        query = select(batches).where(batches.c.run_id == run_id).order_by(batches.c.created_at, batches.c.id)
        with self.database.connected() as connection:
            return [_batch(row) for row in connection.execute(query)]

    def known_to(self, identity: str) -> set[str]:
        """Return what the service of a model calls the batches of it that are kept."""
        query = select(batches.c.service_id).where(batches.c.identity == identity, batches.c.service_id.is_not(None))
        with self.database.connected() as connection:
            return set(connection.execute(query).scalars())

    def unsettled(self, run_id: str) -> Iterator[AskedQuestion]:
        """Yield the questions that are in a batch, that failed in a run, or whose usage is in no score."""
        failed = (_Q.state == FAILED) & (_Q.run_id == run_id)
        query = select(batch_questions).where((_Q.state == ASKED) | failed | _Q.usage.is_not(None))
        with self.database.connected() as connection:
            yield from map(_question, connection.execute(query.execution_options(yield_per=LARGEST)))

    def within(self, batch: Batch) -> list[AskedQuestion]:
        """Return the questions that were last asked in a batch."""
        with self.database.connected() as connection:
            rows = connection.execute(select(batch_questions).where(_Q.batch_id == batch.id)).all()
        return [_question(row) for row in rows]

    def batch(self, batch_id: str) -> Batch | None:
        """Return what is kept of a batch, None if it was released."""
        with self.database.connected() as connection:
            row = connection.execute(select(batches).where(batches.c.id == batch_id)).first()
        return None if row is None else _batch(row)

    def question(self, key: str) -> AskedQuestion | None:
        """Return what is kept of a question, None if it was never asked in a batch."""
        with self.database.connected() as connection:
            row = connection.execute(select(batch_questions).where(_Q.key == key)).first()
        return None if row is None else _question(row)


def _claim_questions(connection: Connection, batch: Batch, keys: Sequence[str]) -> set[str]:
    """Return which of some questions are the batch's now: new ones, and those that were asked and have been settled."""
    before = {row.key: row for row in connection.execute(select(batch_questions).where(_Q.key.in_(keys)))}
    rows = [(key, batch.id, batch.run_id, ASKED, 1, 0) for key in dict.fromkeys(keys) if key not in before]
    columns = ("key", "batch_id", "run_id", "state", "tries", "answers")
    insert_rows(connection, batch_questions, columns, rows, once=True)
    settled = [key for key, row in before.items() if row.state != ASKED]
    free = (_Q.key.in_(settled)) & (_Q.state != ASKED)
    same = free & (_Q.run_id == batch.run_id)
    moved = {"batch_id": batch.id, "state": ASKED, "failure": None, "then": None}
    if settled:
        connection.execute(update(batch_questions).where(same).values(**moved, tries=_Q.tries + 1))
        anew = {**moved, "run_id": batch.run_id, "tries": 1, "answers": 0}
        connection.execute(update(batch_questions).where(free).values(anew))
    mine = select(_Q.key).where(_Q.key.in_(keys), _Q.batch_id == batch.id)
    return set(connection.execute(mine).scalars())


def _settle(asked: AskedQuestion, found: AskedQuestion) -> AskedQuestion:
    usages = [one for one in (asked.usage, found.usage) if one is not None]
    return asked._replace(
        state=found.state,
        answers=asked.answers + found.answers,
        failure=found.failure,
        then=found.then,
        usage=sum(usages[1:], usages[0]) if usages else None,
    )


def _question(row: AnyRow) -> AskedQuestion:
    failure, usage = row.failure, row.usage
    values: dict[str, Any] = {
        **values_of(row),
        "failure": None if failure is None else Failure.model_validate(read_json(failure)),
        "then": row.then or "give up",
        "usage": None if usage is None else Usage.model_validate_json(usage),
    }
    return AskedQuestion(**values)


def _row(question: AskedQuestion) -> dict[str, Any]:
    failure, usage = question.failure, question.usage
    return {
        "key": question.key,
        "state": question.state,
        "answers": question.answers,
        "failure": None if failure is None else json_text(failure.redact()),
        "then": question.then,
        "usage": None if usage is None else usage.model_dump_json(),
    }


def _values(batch: Batch) -> dict[str, Any]:
    return {**asdict(batch), "strangers": json_text(list(batch.strangers))}


def _batch(row: AnyRow) -> Batch:
    values: dict[str, Any] = {**values_of(row), "strangers": tuple(json.loads(row.strangers))}
    return Batch(**values)


def _parts(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, LARGEST)):
        yield some
