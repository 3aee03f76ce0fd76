"""Which conversations people are asked to label, and how likely each was to be drawn.

Only labels of drawn conversations say how many of all conversations are good. Those that a judge is uncertain of are
worse than the others: a rate that is estimated from them is wrong however many they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Literal

from sqlalchemy import Connection, select, update

from vivavoce.errors import NotFound
from vivavoce.plugins import lazy
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Grading
from vivavoce.store.database.schema import attempts, labels, queue_items, queues
from vivavoce.store.labels.order import GraderScores, Verdict

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
    doubts = [_doubt(one.confidence) for one in verdicts]
    whole = math.fsum(doubts)
    sides = {side: sum(one.passed is side for one in verdicts) for side in (True, False)}
    classes = sum(map(bool, sides.values()))
    return [
        (1 / number + doubt / whole + 1 / (classes * sides[one.passed])) / 3
        for one, doubt in zip(verdicts, doubts, strict=True)
    ]


def _doubt(confidence: float | None) -> float:
    """Return the standard deviation of whether a verdict is right, for a judge that is as often right as it says."""
    sure = 0.5 if confidence is None else min(_SURE, max(0.5, confidence))
    return math.sqrt(sure * (1 - sure))
