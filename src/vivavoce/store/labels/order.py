"""The order in which people should label conversations: uncertain first, or random."""

from __future__ import annotations

import json
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Connection, func, select

from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.database.schema import attempts, scores

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
