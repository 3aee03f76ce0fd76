"""Which conversations people are asked to label, in which order, and how likely each was to be drawn."""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, func, select, update

from vivavoce.errors import NotFound
from vivavoce.plugins import lazy
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.database.schema import attempts, labels, queue_items, queues, scores

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
