"""Queues of conversations to label: which conversations, in which order, and who labels which of them."""

from __future__ import annotations

import json
import math
import random
import secrets
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, insert, select, update

from vivavoce.errors import NotFound, UsageError
from vivavoce.plugins import lazy
from vivavoce.records.label import Label
from vivavoce.records.redaction import keys_of_environment
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.audit import note
from vivavoce.store.browse.listing import Listed
from vivavoce.store.database.database import AnyRow, Database, values_of
from vivavoce.store.database.schema import attempts, gradings, labels, queue_items, queues, scores

MOST = 500
"""Maximum number of conversations in an order."""
_SPLIT = 5000
"""Maximum number of votes that are searched for split ones."""

_KEY = (attempts.c.sample_id, attempts.c.target, attempts.c.trial)


class Verdict(NamedTuple):
    """The verdict of a grader on an attempt, and how sure the grader is."""

    attempt_id: int
    passed: bool
    confidence: float | None


@dataclass(frozen=True, slots=True)
class GraderScores:
    """The scores that one grader gave whole conversations."""

    connection: Connection
    grading: Grading
    grader: str

    def in_doubt(self, limit: int) -> list[AttemptKey]:
        """Return the conversations, those with the most uncertain scores first."""
        values = self.values()
        if not values:
            return []
        split = self.split() if "votes" in self.extra(values[0]) else []
        near = self.nearest(self.pass_mark(values), limit)
        return self.keys([*dict.fromkeys([*split, *near])][:limit])

    def at_random(self, seed: int, limit: int) -> list[AttemptKey]:
        """Return conversations in an order that the seed decides."""
        a = attempts.c
        plan = select(a.id).where(a.run_id == self.grading.run_id).order_by(a.position, a.id)
        ids = list(self.connection.execute(plan).scalars())
        random.Random(seed).shuffle(ids)
        drawn: list[int] = []
        while ids and len(drawn) < limit:
            some, ids = ids[:MOST], ids[MOST:]
            drawn += self.scored(some) if self.grader else some
        return self.keys(drawn[:limit])

    def values(self) -> list[float]:
        """Return every distinct score, in ascending order."""
        s = scores.c
        query = select(s.value).where(*self._graded_here(), s.value.is_not(None)).group_by(s.value).order_by(s.value)
        return list(self.connection.execute(query).scalars())

    def verdicts(self) -> list[Verdict]:
        """Return every verdict on a whole conversation, in the order of the attempts."""
        s = scores.c
        query = select(s.attempt_id, s.passed, s.confidence).where(*self._graded_here(), s.passed.is_not(None))
        rows = self.connection.execute(query.order_by(s.attempt_id))
        return [Verdict(row.attempt_id, bool(row.passed), row.confidence) for row in rows]

    def extra(self, value: float) -> dict[str, Any]:
        """Return the extra data of one of the scores with a value."""
        query = select(scores.c.extra).where(*self._graded_here(), scores.c.value == value).limit(1)
        return _object(self.connection.execute(query).scalar())

    def passes(self, value: float) -> bool:
        """Return whether a score value passes, as recorded in one of the scores with it."""
        query = select(scores.c.passed).where(*self._graded_here(), scores.c.value == value).limit(1)
        return bool(self.connection.execute(query).scalar_one())

    def pass_mark(self, values: Sequence[float]) -> float:
        """Return a score between those that fail and those that pass."""
        first = bisect_left(values, True, key=self.passes)
        if first == len(values):
            return values[-1]
        return (values[max(first - 1, 0)] + values[first]) / 2

    def split(self) -> list[int]:
        """Return the attempts with split votes of a panel, the closest votes first."""
        s = scores.c
        unanimous = s.extra.contains('"agreement":1.0')
        query = (
            select(s.attempt_id, s.extra).where(*self._graded_here(), s.value.is_not(None), ~unanimous).limit(_SPLIT)
        )
        shares = [(_object(row.extra).get("agreement"), row.attempt_id) for row in self.connection.execute(query)]
        split = [(share, number) for share, number in shares if isinstance(share, float) and share < 1]
        return [number for _, number in sorted(split)]

    def nearest(self, mark: float, limit: int) -> list[int]:
        """Return the attempts whose scores are closest to a value."""
        s = scores.c
        query = select(s.attempt_id).where(*self._graded_here(), s.value.is_not(None))
        query = query.order_by(func.abs(s.value - mark), s.attempt_id).limit(limit)
        return list(self.connection.execute(query).scalars())

    def scored(self, ids: Sequence[int]) -> list[int]:
        """Return which of some attempts have a score, in the same order."""
        s = scores.c
        query = select(s.attempt_id).where(s.attempt_id.in_(ids), *self._graded_here(), s.value.is_not(None))
        found = set(self.connection.execute(query).scalars())
        return [number for number in ids if number in found]

    def keys(self, ids: Sequence[int]) -> list[AttemptKey]:
        """Return the keys of attempts, in the same order."""
        rows = self.connection.execute(select(attempts.c.id, *_KEY).where(attempts.c.id.in_(ids)))
        found = {row.id: AttemptKey(row.sample_id, row.target, row.trial) for row in rows}
        return [found[number] for number in ids]

    def _graded_here(self) -> tuple[ColumnElement[bool], ...]:
        s = scores.c
        return s.name == self.grader, s.grading_id == self.grading.id, s.turn.is_(None)


def _object(text: str | None) -> dict[str, Any]:
    parsed = json.loads(text) if text else None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}


Selection = Literal["disagreement", "random", "weighted"]
"""Uncertain conversations first, a random order, or drawn at random with probabilities that favour what tells most."""

Drawn = tuple[int, float | None]
"""An attempt, and how likely it was drawn: 1 where all were as likely, None where it was chosen in another way."""

_CHUNK = 500
_SURE = 0.98
"""The largest confidence of a judge that is believed when conversations are drawn."""


def chosen_for(
    connection: Connection, grading: Grading, grader: str, selection: Selection, seed: int, size: int
) -> list[Drawn]:
    """Return at most `size` attempts to label, in their order."""
    ranked = GraderScores(connection, grading, grader)
    if selection == "weighted" and grader:
        return weighted(ranked.verdicts(), size, seed)
    at_random = selection == "random" or not grader
    keys = ranked.at_random(seed, size) if at_random else ranked.in_doubt(size)
    numbers = attempt_numbers(connection, grading.run_id, keys)
    return [(number, 1.0 if at_random else None) for number in numbers]


def weighted(verdicts: Sequence[Verdict], size: int, seed: int) -> list[Drawn]:
    """Draw at most `size` attempts with unequal probabilities, and return them in random order.

    A third of the probability is the same for all, a third is shared by how unsure the judge is, and a third goes half
    to what passed and half to what did not: so rare failures are seen, and no label weighs more than three others.
    Each attempt is drawn at most once.

    Source: W. G. Madow, On the Theory of Systematic Sampling, II (1949), for unequal probabilities without replacement.
    """
    draw, order = random.Random(seed), list(verdicts)
    draw.shuffle(order)
    if not order:
        return []
    # numpy takes long to load
    chances: list[float] = lazy("vivavoce.stats.sampled:inclusion")(_shares(order), min(size, len(order))).tolist()
    found: list[Drawn] = []
    total, mark, scale = 0.0, draw.random(), len(order) / max(1, min(size, len(order)))
    for one, chance in zip(order, chances, strict=True):
        total += chance
        if total > mark:
            found.append((one.attempt_id, chance * scale))
            mark += 1
    draw.shuffle(found)
    return found


def drawn_in(connection: Connection, queue: str, attempt_id: int, label: Label) -> float | None:
    """Return how likely the conversation of a label was drawn in a queue of its author, None if nobody knows.

    Conversations before it in the queue that they had labelled earlier were drawn as well, and are marked so.

    Raises:
        NotFound: the queue does not have this conversation for them.
    """
    i, q = queue_items.c, queues.c
    mine = select(i.position, i.drawn, q.blind).join(queues, q.id == i.queue_id)
    mine = mine.where(i.queue_id == queue, i.person == label.author, q.grader == label.grader)
    found = connection.execute(mine.where(i.attempt_id == attempt_id)).first()
    if found is None or label.turn is not None:
        raise NotFound("queue", queue, message=f"queue {queue} does not ask {label.author} about this conversation")
    if not found.blind or found.drawn is None:
        return None
    before = select(labels.c.id, i.drawn).join(queue_items, i.attempt_id == labels.c.attempt_id)
    before = before.where(
        i.queue_id == queue,
        i.person == label.author,
        i.position < found.position,
        labels.c.author == label.author,
        labels.c.grader == label.grader,
        labels.c.turn.is_(None),
        labels.c.drawn.is_(None),
    )
    for row in connection.execute(before).all():
        connection.execute(update(labels).where(labels.c.id == row.id).values(drawn=row.drawn))
    return found.drawn


def attempt_numbers(connection: Connection, run_id: str, keys: Sequence[AttemptKey]) -> list[int]:
    """Return the attempts of a run with these keys, in the same order; what was deleted meanwhile is left out."""
    a, number_of = attempts.c, dict[AttemptKey, int]()
    for start in range(0, len(keys), _CHUNK):
        names = {key.sample_id for key in keys[start : start + _CHUNK]}
        query = select(a.id, a.sample_id, a.target, a.trial)
        rows = connection.execute(query.where(a.run_id == run_id, a.sample_id.in_(names)))
        number_of |= {AttemptKey(row.sample_id, row.target, row.trial): row.id for row in rows}
    return [number_of[key] for key in keys if key in number_of]


def _shares(verdicts: Sequence[Verdict]) -> list[float]:
    """Return the share of each verdict in a single draw."""
    number = len(verdicts)
    doubts = [_doubt(verdict.confidence) for verdict in verdicts]
    whole = math.fsum(doubts)
    sides = {side: sum(verdict.passed is side for verdict in verdicts) for side in (True, False)}
    classes = sum(map(bool, sides.values()))
    return [
        (1 / number + doubt / whole + 1 / (classes * sides[one.passed])) / 3
        for one, doubt in zip(verdicts, doubts, strict=True)
    ]


def _doubt(confidence: float | None) -> float:
    """Return the standard deviation of whether a verdict is right, for a judge that is as often right as it says."""
    sure = 0.5 if confidence is None else min(_SURE, max(0.5, confidence))
    return math.sqrt(sure * (1 - sure))


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
                raise UsageError("use each person's token name: one line, at most 100 characters")
        if not 1 <= self.overlap <= len(self.people):
            raise UsageError(f"overlap (people per conversation) must be 1 to {len(self.people)} here")
        if not 1 <= self.size <= MOST:
            raise UsageError(f"use 1 to {MOST} conversations")


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
