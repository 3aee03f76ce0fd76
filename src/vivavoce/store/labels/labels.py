"""Labels: what people say of conversations and turns, kept beside the scores.

Each author has one label in a place: a conversation or a turn, and the question of one grader. A new one takes the
place of the old one; the audit log keeps both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from vivavoce.errors import NotFound
from vivavoce.records.counting import conversation_name, to_number
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey
from vivavoce.store.access.audit import note
from vivavoce.store.browse.keyset import place_after, read_place
from vivavoce.store.browse.listing import LabelPage
from vivavoce.store.database.database import spelled
from vivavoce.store.database.schema import attempts, labels, scores, turns
from vivavoce.store.runs.decode import AnyRow
from vivavoce.store.runs.naming import keys_of, no_conversation

if TYPE_CHECKING:
    from vivavoce.store.store import Store

BATCH = 500

_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)
_SAID = (*_KEY, *(labels.c[name] for name in ("turn", "grader", "author", "verdict", "note", "blind", "created_at")))


@dataclass(frozen=True, slots=True)
class LabelPlace:
    """Where a label of an author stands; see `Label`."""

    run_id: str
    key: AttemptKey
    turn: int | None
    grader: str
    author: str

    @classmethod
    def of(cls, run_id: str, label: Label) -> Self:
        """Return where a label of a run stands."""
        return cls(run_id, label.key, label.turn, label.grader, label.author)

    @property
    def subject(self) -> str:
        """What the audit log calls the conversation."""
        return f"{self.run_id}/{conversation_name(self.key.sample_id, self.key.trial)}"


def set_label(store: Store, run_id: str, label: Label) -> Label | None:
    """Keep a label, and return the one of the same author whose place it takes.

    Raises:
        UsageError: there is no such conversation, turn or grader.
        StoreError: the store cannot be written.
    """
    place = LabelPlace.of(run_id, label)
    with store.writing() as connection:
        attempt_id = _attempt(connection, place)
        if label.grader and not _graded(connection, attempt_id, label.grader):
            raise NotFound("grader", label.grader, within=f"the scores of sample '{label.sample_id}'")
        before = _put(connection, attempt_id, place, label)
        note(connection, label.author, "label.set", place.subject, _told(label, before))
    return before


def remove_label(store: Store, place: LabelPlace) -> Label:
    """Take a label away, and return it.

    Raises:
        UsageError: there is none.
        StoreError: the store cannot be written.
    """
    with store.writing() as connection:
        attempt_id = _attempt(connection, place)
        found = _found(connection, attempt_id, place)
        if found is None:
            raise NotFound("label", place.author, message=f"{place.author} has no label here")
        connection.execute(delete(labels).where(labels.c.id == found.id))
        note(connection, place.author, "label.remove", place.subject, _told(label_of(found)))
    return label_of(found)


def _put(connection: Connection, attempt_id: int, place: LabelPlace, label: Label) -> Label | None:
    """Keep a label of an attempt in place of the author's own; the caller notes it and commits."""
    before = _found(connection, attempt_id, place)
    values: dict[str, Any] = {
        "verdict": label.verdict,
        "note": None if label.note is None else spelled(connection, label.note),
        "blind": int(label.blind),
        "created_at": label.created_at,
    }
    if before is not None:
        connection.execute(update(labels).where(labels.c.id == before.id).values(values))
        return label_of(before)
    names = {"grader": spelled(connection, place.grader), "author": spelled(connection, place.author)}
    connection.execute(insert(labels).values(**values, **names, attempt_id=attempt_id, turn=place.turn))
    return None


def labels_of(store: Store, run_id: str, key: AttemptKey) -> list[Label]:
    """Return what people say of a conversation and of its turns, the oldest first.

    Raises:
        UsageError: there is no such conversation.
    """
    with store.connected() as connection:
        attempt_id = _attempt(connection, LabelPlace(run_id, key, None, "", ""), hold=False)
        query = said().where(labels.c.attempt_id == attempt_id).order_by(labels.c.created_at, labels.c.id)
        return list(map(label_of, connection.execute(query)))


def list_labels(
    store: Store,
    run_id: str,
    *,
    grader: str | None = None,
    author: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> LabelPage:
    """Return some labels of a run in the order in which they were first given.

    Raises:
        UsageError: `after` is no place of this list.
    """
    query = said().add_columns(labels.c.id).limit(limit + 1)
    if after is not None:
        query = query.where(labels.c.id > read_place(after, int)[0])
    with store.connected() as connection:
        found = connection.execute(of_run(connection, query, run_id, grader, author)).all()
    page = found[:limit]
    following = place_after((page[-1].id,)) if len(found) > limit else None
    return LabelPage(labels=list(map(label_of, page)), next=following)


def all_labels(store: Store, run_id: str, *, grader: str | None = None, author: str | None = None) -> Iterator[Label]:
    """Yield every label of a run, a page at a time."""
    after: str | None = None
    while True:
        page = list_labels(store, run_id, grader=grader, author=author, after=after, limit=BATCH)
        yield from page.labels
        after = page.next
        if after is None:
            return


def labelled(store: Store, author: str) -> dict[tuple[str, str], int]:
    """Return how many conversations somebody has labelled, by run and grader."""
    a, mine = attempts.c, labels.c
    query = select(a.run_id, mine.grader, func.count(mine.attempt_id.distinct())).select_from(labels)
    query = query.join(attempts, a.id == mine.attempt_id).group_by(a.run_id, mine.grader)
    with store.connected() as connection:
        rows = connection.execute(query.where(mine.author == spelled(connection, author)))
        return {(run_id, grader): number for run_id, grader, number in rows}


def copy_labels(source: Connection, target: Connection) -> int:
    """Copy the labels of conversations that another store has too, and return how many; of two the newer stays."""
    copied = 0
    for row in source.execute(said().add_columns(attempts.c.run_id).order_by(labels.c.id)).all():
        label = label_of(row)
        place = LabelPlace.of(row.run_id, label)
        attempt_id = _number(target, place, hold=True)
        if attempt_id is None:  # the conversation was added meanwhile, and comes with the next copy
            continue
        there = _found(target, attempt_id, place)
        if there is None or there.created_at < label.created_at:
            before = _put(target, attempt_id, place, label)
            note(target, label.author, "label.copy", place.subject, _told(label, before))
            copied += 1
    return copied


def now_label(place: LabelPlace, verdict: str, remark: str | None = None, *, blind: bool = False) -> Label:
    """Return the label that an author gives now.

    Raises:
        ValueError: the verdict is none, or the note is too long.
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


def said() -> Select[Any]:
    """Return the question for labels, each with the key of its conversation."""
    return select(*_SAID).select_from(labels).join(attempts, attempts.c.id == labels.c.attempt_id)


def of_run(
    connection: Connection, query: Select[Any], run_id: str, grader: str | None, author: str | None
) -> Select[Any]:
    """Return a question for the labels of a run alone, in the order in which they were first given."""
    # Labels are few and attempts many: a run that is looked for by no index makes SQLite begin with the labels.
    query = query.where(func.coalesce(attempts.c.run_id, "") == run_id).order_by(labels.c.id)
    if grader is not None:
        query = query.where(labels.c.grader == spelled(connection, grader))
    return query if author is None else query.where(labels.c.author == spelled(connection, author))


def _number(connection: Connection, place: LabelPlace, *, hold: bool) -> int | None:
    """Return the number of an attempt; to `hold` it keeps others from it, on PostgreSQL, until the transaction ends."""
    a, key = attempts.c, place.key
    query = select(a.id).where(
        a.run_id == place.run_id,
        a.sample_id == spelled(connection, key.sample_id),
        a.target == spelled(connection, key.target),
        a.trial == key.trial,
    )
    return connection.execute(query.with_for_update() if hold else query).scalar()


def _attempt(connection: Connection, place: LabelPlace, *, hold: bool = True) -> int:
    found, key = _number(connection, place, hold=hold), place.key
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


def _graded(connection: Connection, attempt_id: int, grader: str) -> bool:
    s = scores.c
    query = select(s.id).where(s.attempt_id == attempt_id, s.kind == "grade", s.name == spelled(connection, grader))
    return connection.execute(query.limit(1)).first() is not None


def _found(connection: Connection, attempt_id: int, place: LabelPlace) -> AnyRow | None:
    query = (
        said()
        .add_columns(labels.c.id)
        .where(
            labels.c.attempt_id == attempt_id,
            labels.c.grader == spelled(connection, place.grader),
            labels.c.author == spelled(connection, place.author),
            func.coalesce(labels.c.turn, -1) == (-1 if place.turn is None else place.turn),
        )
    )
    return connection.execute(query).first()


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
    )


def _told(label: Label, before: Label | None = None) -> dict[str, object]:
    """Return what the audit log keeps of a change: where the label stands, what it says, and what it said before."""
    said = {"verdict", "note", "blind", "created_at"}
    where = label.model_dump(include={"target", "turn", "grader"})
    told: dict[str, object] = {**where, **label.model_dump(include=said)}
    return told if before is None else {**told, "before": before.model_dump(include=said)}
