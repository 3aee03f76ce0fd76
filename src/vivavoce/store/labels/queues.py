"""Queues of conversations to label: who labels which, and how far each person of an assigned one is.

All of a queue is dealt when it is made, in one transaction: nobody has to claim anything later, on whichever server.
One that somebody begins for themselves is assigned to nobody; only they find it, and it is in no list.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, func, insert, select

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.access.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, values_of
from vivavoce.store.database.schema import attempts, gradings, labels, queue_items, queues
from vivavoce.store.labels.drawing import MOST, Drawn, Selection, attempt_numbers, chosen_for

MOST_PEOPLE = 50
KEPT = 20
"""Queues that somebody began for themselves and that are kept; beyond that, the oldest is dropped."""
_LISTED = 100
_OWN = 0
"""The overlap of a queue that somebody began for themselves."""


class PersonProgress(Listed):
    """How many of the conversations assigned to somebody they have labelled."""

    person: str
    assigned: int
    done: int


class AssignedQueue(Listed):
    """Conversations of a run that people were asked to label for one grader; `overlap` people label each of `items`."""

    id: str
    run_id: str
    grading_id: str
    grader: str
    selection: Selection
    seed: int
    blind: bool
    overlap: int
    author: str
    created_at: float
    items: int
    people: list[PersonProgress]


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """What a queue is made of: `size` conversations, dealt to `people`, `overlap` of them for each."""

    grader: str
    people: Sequence[str]
    overlap: int = 1
    size: int = 50
    selection: Selection = "random"
    seed: int = 1
    blind: bool = True

    def check(self) -> None:
        """Check that it can be dealt.

        Raises:
            UsageError: it cannot.
        """
        if not 1 <= len(self.people) <= MOST_PEOPLE or len(set(self.people)) < len(self.people):
            raise UsageError(f"name 1 to {MOST_PEOPLE} people, each once")
        for person in self.people:
            if not 0 < len(person) <= 100 or not person.isprintable() or person != person.strip():
                raise UsageError("the name of a person is that of their token, on one line of at most 100 characters")
        if not 1 <= self.overlap <= len(self.people):
            raise UsageError(f"overlap is how many people label each conversation: 1 to {len(self.people)} here")
        if not 1 <= self.size <= MOST:
            raise UsageError(f"a queue has 1 to {MOST} conversations")


@dataclass(frozen=True, slots=True)
class PersonalQueue:
    """What one person has in a queue: what is asked of them, and the conversations in their order.

    `blind` hides the judge's answer from them.
    """

    id: str
    run_id: str
    grading_id: str
    grader: str
    selection: Selection
    seed: int
    blind: bool
    items: Sequence[AttemptKey]


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of a store; lists have those that are assigned."""

    database: Database

    def create(self, grading: Grading, plan: QueuePlan, author: str) -> AssignedQueue:
        """Deal conversations that a grader has scored to people; without a grader, any conversations.

        Raises:
            UsageError: the plan cannot be dealt, or no conversation has a score.
            StoreError: the store cannot be written.
        """
        cut = keys_of_environment().cut
        plan = replace(plan, people=[cut(person) for person in plan.people])
        plan.check()
        with self.database.writing() as connection:
            chosen = chosen_for(connection, grading, plan.grader, plan.selection, plan.seed, plan.size)
            if not chosen:
                raise UsageError("no conversation of this run has a score")
            queue_id = _insert(connection, grading, plan, author)
            connection.execute(insert(queue_items), _dealt(queue_id, chosen, plan))
            told = {"grader": plan.grader, "people": list(plan.people), "overlap": plan.overlap, "items": len(chosen)}
            note(connection, author, "queue.create", f"{grading.run_id}/{queue_id}", told)
        return self.get(queue_id)

    def begin(self, grading: Grading, plan: QueuePlan, keys: Sequence[AttemptKey]) -> PersonalQueue:
        """Keep a queue that the only person of a plan begins for themselves, with the conversations in this order.

        Raises:
            UsageError: there are no conversations.
            StoreError: the store cannot be written.
        """
        (person,) = plan.people
        alone = replace(plan, overlap=1)
        with self.database.writing() as connection:
            drawn = 1.0 if plan.selection == "random" and plan.blind else None
            chosen = [(number, drawn) for number in attempt_numbers(connection, grading.run_id, keys)]
            if not chosen:
                raise UsageError("no conversation of this run has a score")
            queue_id = _insert(connection, grading, replace(plan, overlap=_OWN), person)
            connection.execute(insert(queue_items), _dealt(queue_id, chosen, alone))
            mine = select(queues.c.id).where(queues.c.author == person, queues.c.overlap == _OWN)
            old = connection.execute(mine.order_by(queues.c.created_at.desc(), queues.c.id).offset(KEPT).limit(_LISTED))
            _delete(connection, old.scalars().all())
        return self.of(queue_id, person)

    def of(self, queue_id: str, person: str) -> PersonalQueue:
        """Return what somebody has in a queue that was assigned to them, or that they began.

        Raises:
            UsageError: there is none of that id, or nothing in it is theirs.
        """
        names = ("id", "run_id", "grading_id", "grader", "selection", "seed", "blind")
        with self.database.connected() as connection:
            row = connection.execute(select(*(queues.c[name] for name in names)).where(queues.c.id == queue_id)).first()
        items = self.items(queue_id, person)
        if row is None or not items:
            raise NotFound(
                "queue",
                queue_id,
                message="this queue no longer exists (newer ones took its place, it or its run was deleted, or it is "
                "another user's); choose the run again to continue",
            )
        values: dict[str, Any] = {**values_of(row), "blind": bool(row.blind)}
        return PersonalQueue(**values, items=items)

    def get(self, queue_id: str) -> AssignedQueue:
        """Return a queue that is assigned.

        Raises:
            UsageError: there is none of that id.
        """
        with self.database.connected() as connection:
            row = connection.execute(_select_assigned().where(queues.c.id == queue_id)).first()
            if row is None:
                raise NotFound("queue", queue_id)
            return _entries(connection, [row])[0]

    def all(self, *, run_id: str | None = None, person: str | None = None) -> list[AssignedQueue]:
        """Return the newest hundred queues, newest first: those of a run, those of a person."""
        query = _select_assigned().order_by(queues.c.created_at.desc(), queues.c.id).limit(_LISTED)
        if run_id is not None:
            query = query.where(queues.c.run_id == run_id)
        if person is not None:
            query = query.where(queues.c.id.in_(select(queue_items.c.queue_id).where(queue_items.c.person == person)))
        with self.database.connected() as connection:
            return _entries(connection, connection.execute(query).all())

    def items(self, queue_id: str, person: str) -> list[AttemptKey]:
        """Return what was assigned to somebody, in order; nothing if nothing was."""
        a, i = attempts.c, queue_items.c
        query = select(a.sample_id, a.target, a.trial).join(queue_items, i.attempt_id == a.id)
        query = query.where(i.queue_id == queue_id, i.person == person).order_by(i.position)
        with self.database.connected() as connection:
            return [AttemptKey(*row) for row in connection.execute(query)]

    def delete(self, queue_id: str, actor: str) -> AssignedQueue:
        """Delete a queue, and return it; labels stay.

        Raises:
            UsageError: there is none of that id.
            StoreError: the store cannot be written.
        """
        found = self.get(queue_id)
        with self.database.writing() as connection:
            _delete(connection, [queue_id])
            note(connection, actor, "queue.delete", f"{found.run_id}/{queue_id}", {"grader": found.grader})
        return found


def copy_queues(source: Connection, target: Connection) -> int:
    """Copy the assigned queues that the other store lacks, and return how many; queues are never changed."""
    there = set(target.execute(select(queues.c.id)).scalars())
    known = set(target.execute(select(gradings.c.id)).scalars())
    a, i, copied = attempts.c, queue_items.c, 0
    for row in source.execute(_select_assigned().order_by(queues.c.created_at, queues.c.id)).all():
        if row.id in there or row.grading_id not in known:
            continue
        named = select(i.person, i.position, i.drawn, a.sample_id, a.target, a.trial).join(
            attempts, a.id == i.attempt_id
        )
        items = source.execute(named.where(i.queue_id == row.id).order_by(i.person, i.position)).all()
        keys = [AttemptKey(item.sample_id, item.target, item.trial) for item in items]
        numbers = attempt_numbers(target, row.run_id, keys)
        if len(numbers) < len(keys):  # a conversation was added meanwhile; the queue comes with the next copy
            continue
        target.execute(insert(queues).values(values_of(row)))
        dealt = [
            {
                "queue_id": row.id,
                "person": one.person,
                "position": one.position,
                "attempt_id": number,
                "drawn": one.drawn,
            }
            for one, number in zip(items, numbers, strict=True)
        ]
        if dealt:
            target.execute(insert(queue_items), dealt)
        note(target, row.author, "queue.copy", f"{row.run_id}/{row.id}", {"grader": row.grader})
        copied += 1
    return copied


def _select_assigned() -> Select[Any]:
    return select(queues).where(queues.c.overlap > _OWN)


def _insert(connection: Connection, grading: Grading, plan: QueuePlan, author: str) -> str:
    """Insert a queue without its conversations, and return its id."""
    queue_id = f"q-{secrets.token_urlsafe(9)}"
    values = {
        "id": queue_id,
        "run_id": grading.run_id,
        "grading_id": grading.id,
        "grader": plan.grader,
        "selection": plan.selection,
        "seed": plan.seed,
        "blind": int(plan.blind),
        "overlap": plan.overlap,
        "author": author,
        "created_at": time.time(),
    }
    connection.execute(insert(queues).values(values))
    return queue_id


def _delete(connection: Connection, ids: Sequence[str]) -> None:
    if ids:
        connection.execute(delete(queue_items).where(queue_items.c.queue_id.in_(ids)))
        connection.execute(delete(queues).where(queues.c.id.in_(ids)))


def _dealt(queue_id: str, chosen: Sequence[Drawn], plan: QueuePlan) -> list[dict[str, object]]:
    """Return the rows of a queue: people take turns, so that their shares differ by one at most."""
    rows: list[dict[str, object]] = []
    for place, (attempt_id, drawn) in enumerate(chosen):
        for more in range(plan.overlap):
            person = plan.people[(place * plan.overlap + more) % len(plan.people)]
            item = {"queue_id": queue_id, "person": person, "position": place, "attempt_id": attempt_id}
            rows.append({**item, "drawn": drawn})
    return rows


def _entries(connection: Connection, rows: Sequence[AnyRow]) -> list[AssignedQueue]:
    i, q, mine = queue_items.c, queues.c, labels.c
    same = and_(
        mine.attempt_id == i.attempt_id,
        mine.author == i.person,
        mine.grader == q.grader,
        mine.turn.is_(None),
    )
    counted = (func.count().label("assigned"), func.count(mine.id).label("done"))
    query = select(i.queue_id, i.person, *counted).join(queues, q.id == i.queue_id).outerjoin(labels, same)
    query = query.where(i.queue_id.in_([row.id for row in rows])).group_by(i.queue_id, i.person).order_by(i.person)
    people: dict[str, list[PersonProgress]] = {}
    for one in connection.execute(query):
        progress = PersonProgress(person=one.person, assigned=one.assigned, done=one.done)
        people.setdefault(one.queue_id, []).append(progress)
    return [
        AssignedQueue.model_validate(
            {
                **values_of(row),
                "items": sum(one.assigned for one in people.get(row.id, [])) // row.overlap,
                "people": people.get(row.id, []),
            }
        )
        for row in rows
    ]
