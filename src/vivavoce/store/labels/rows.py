"""Labels as rows of the store, and their places."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Self

from sqlalchemy import Connection, Select, func, insert, select, update

from vivavoce.errors import NotFound
from vivavoce.records.label import Decision, Label
from vivavoce.records.run import AttemptKey
from vivavoce.records.score import conversation_name, to_number
from vivavoce.store.database.database import AnyRow
from vivavoce.store.database.schema import attempts, labels, scores, turns
from vivavoce.store.runs.naming import keys_of, no_conversation

_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)
_SAID = (
    *_KEY,
    *(labels.c[name] for name in ("turn", "grader", "author", "verdict", "note", "blind", "created_at", "drawn")),
)


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """The place of a label of an author; see `Label`."""

    run_id: str
    key: AttemptKey
    turn: int | None
    grader: str
    author: str

    @classmethod
    def of(cls, run_id: str, label: Label) -> Self:
        """Return the place of a label of a run."""
        return cls(run_id, label.key, label.turn, label.grader, label.author)

    @property
    def subject(self) -> str:
        """The name of the conversation in the audit log."""
        return f"{self.run_id}/{conversation_name(self.key.sample_id, self.key.trial)}"


def now_label(place: LabelPlace, verdict: str, remark: str | None = None, *, blind: bool = False) -> Label:
    """Return a new label of an author.

    Raises:
        ValueError: the verdict is unknown, or the note is too long.
    """
    return Label.model_validate(
        {
            **place.key._asdict(),
            "turn": place.turn,
            "grader": place.grader,
            "author": place.author,
            "verdict": verdict,
            "note": (remark or "").strip() or None,
            "blind": blind,
            "created_at": time.time(),
        }
    )


def now_decision(place: LabelPlace, verdict: str, remark: str | None = None, *, blind: bool = False) -> Decision:
    """Return a new decision of the author of a place.

    Raises:
        ValueError: the verdict is neither pass nor fail, or the note is too long.
    """
    made = Decision.model_validate(now_label(place, verdict, remark, blind=blind).model_dump())
    return made


def label_query() -> Select[Any]:
    """Return a query for labels, each with the key of its conversation."""
    return select(*_SAID).select_from(labels).join(attempts, attempts.c.id == labels.c.attempt_id)


def of_run(query: Select[Any], run_id: str, grader: str | None, author: str | None) -> Select[Any]:
    """Return a query for the labels of a single run, in the order in which they were first set."""
    # Labels are few and attempts many: a run that is looked for by no index makes SQLite begin with the labels.
    query = query.where(func.coalesce(attempts.c.run_id, "") == run_id).order_by(labels.c.id)
    if grader is not None:
        query = query.where(labels.c.grader == grader)
    return query if author is None else query.where(labels.c.author == author)


def label_of(row: AnyRow) -> Label:
    """Return a label by its row."""
    return Label(
        sample_id=row.sample_id,
        target=row.target,
        trial=row.trial,
        turn=row.turn,
        grader=row.grader,
        author=row.author,
        verdict=row.verdict,
        note=row.note,
        blind=bool(row.blind),
        created_at=row.created_at,
        drawn=row.drawn,
    )


def put_label(connection: Connection, attempt_id: int, place: LabelPlace, label: Label) -> Label | None:
    """Store a label of an attempt, replacing the author's earlier one; the caller writes the audit log and commits.

    Who labels a drawn conversation again, wherever, still labels a drawn one.
    """
    before = found_label(connection, attempt_id, place)
    values: dict[str, Any] = {
        "verdict": label.verdict,
        "note": label.note,
        "blind": int(label.blind),
        "created_at": label.created_at,
        "drawn": label.drawn if before is None or label.drawn is not None else before.drawn,
    }
    if before is not None:
        connection.execute(update(labels).where(labels.c.id == before.id).values(values))
        return label_of(before)
    names = {"grader": place.grader, "author": place.author}
    connection.execute(insert(labels).values(**values, **names, attempt_id=attempt_id, turn=place.turn))
    return None


def attempt_number(connection: Connection, place: LabelPlace, *, hold: bool) -> int | None:
    """Return the number of an attempt; with `hold`, PostgreSQL locks its row until the transaction ends."""
    a, key = attempts.c, place.key
    query = select(a.id).where(
        a.run_id == place.run_id,
        a.sample_id == key.sample_id,
        a.target == key.target,
        a.trial == key.trial,
    )
    return connection.execute(query.with_for_update() if hold else query).scalar()


def labelled_attempt(connection: Connection, place: LabelPlace, *, hold: bool = True) -> int:
    """Return the number of the attempt of a label, and check that it has such a turn."""
    found, key = attempt_number(connection, place, hold=hold), place.key
    if found is None:
        raise no_conversation(
            place.run_id, key.sample_id, key.target or None, key.trial, keys_of(connection, place.run_id, key.sample_id)
        )
    if place.turn is not None and not _has_turn(connection, found, place.turn):
        raise NotFound("turn", str(to_number(place.turn)), within=f"sample '{key.sample_id}' of run {place.run_id}")
    return found


def _has_turn(connection: Connection, attempt_id: int, turn: int) -> bool:
    t = turns.c
    return connection.execute(select(t.idx).where(t.attempt_id == attempt_id, t.idx == turn)).first() is not None


def is_graded(connection: Connection, attempt_id: int, grader: str) -> bool:
    """Return whether a grader has scored an attempt."""
    s = scores.c
    query = select(s.id).where(s.attempt_id == attempt_id, s.kind == "grade", s.name == grader)
    return connection.execute(query.limit(1)).first() is not None


def found_label(connection: Connection, attempt_id: int, place: LabelPlace) -> AnyRow | None:
    """Return the label at a place, with its number."""
    query = (
        label_query()
        .add_columns(labels.c.id)
        .where(
            labels.c.attempt_id == attempt_id,
            labels.c.grader == place.grader,
            labels.c.author == place.author,
            func.coalesce(labels.c.turn, -1) == (-1 if place.turn is None else place.turn),
        )
    )
    return connection.execute(query).first()


def change_of(label: Label, before: Label | None = None) -> dict[str, object]:
    """Return the details of a change for the audit log: the place of the label, and its new and earlier content."""
    fields = {"verdict", "note", "blind", "created_at"}
    where = label.model_dump(include={"target", "turn", "grader"})
    detail: dict[str, object] = {**where, **label.model_dump(include=fields)}
    return detail if before is None else {**detail, "before": before.model_dump(include=fields)}
