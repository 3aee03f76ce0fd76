"""The worst samples of a run, each with one line of why."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from vivavoce.records.run import AttemptKey, Grading, Outcome, Reward, ScoreRow
from vivavoce.records.score import GradeResult
from vivavoce.report.text import one_line
from vivavoce.store.store import Store

WIDTH = 200
"""Characters of a reason at most."""


@dataclass(frozen=True, slots=True)
class Worst:
    """An attempt that went badly; `score` is the mean over the graders, None where something could not be scored."""

    key: AttemptKey
    score: float | None
    why: str


def worst(store: Store, grading: Grading, limit: int = 5) -> list[Worst]:
    """Return up to `limit` attempts with errors, then up to `limit` of those below 1, the lowest first.

    Only the scores are read, and the conversations of those that are returned. Among equals the earlier comes first.
    """
    errors: list[AttemptKey] = []

    def scored() -> Iterator[tuple[float, int, AttemptKey]]:
        for place, (key, rows) in enumerate(_attempts(store.scores(grading.id))):
            if any(row.state == "error" for row in rows):
                if len(errors) < limit:
                    errors.append(key)
            elif (mean := _mean(rows)) is not None and mean < 1:
                yield mean, place, key

    lowest = heapq.nsmallest(limit, scored())
    found = [_explained(store, grading, key, None) for key in errors]
    return found + [_explained(store, grading, key, mean) for mean, _, key in lowest]


def why(name: str, said: GradeResult | Reward) -> str:
    """Return in one line why a grader gave what it gave, from the lowest of the turns where there are turns."""
    if said.failure is not None:
        return one_line(f"{name}: {said.failure}", WIDTH)
    turns = said.per_turn_grades or () if isinstance(said, GradeResult) else ()
    if scores := [(turn.score, turn) for turn in turns if turn.score is not None]:
        score, lowest = min(scores, key=lambda one: one[0])
        return one_line(f"{name}, turn {lowest.turn}: {lowest.rationale or f'scored {score:.3g}'}", WIDTH)
    plain = said.state if said.score is None else f"scored {said.score:.3g}"
    return one_line(f"{name}: {said.rationale or plain}", WIDTH)


def outcome_of(store: Store, grading: Grading, key: AttemptKey) -> Outcome:
    """Return what came of one attempt."""
    return next(found for found in store.outcomes(grading.id, sample_id=key.sample_id) if found.attempt.key == key)


def _attempts(rows: Iterable[ScoreRow]) -> Iterator[tuple[AttemptKey, list[ScoreRow]]]:
    for key, group in groupby(rows, lambda row: row.key):
        yield key, list(group)


def _mean(rows: Sequence[ScoreRow]) -> float | None:
    values = [row.value for row in rows if row.kind == "grade" and row.value is not None]
    return math.fsum(values) / len(values) if values else None


def _explained(store: Store, grading: Grading, key: AttemptKey, score: float | None) -> Worst:
    outcome = outcome_of(store, grading, key)
    return Worst(key, score, _failure(outcome) if score is None else _lowest(outcome))


def _failure(outcome: Outcome) -> str:
    if outcome.attempt.failure is not None:
        return one_line(str(outcome.attempt.failure), WIDTH)
    said = {**outcome.grades, **({"reward": outcome.reward} if outcome.reward else {})}
    return next(why(name, one) for name, one in said.items() if one.state == "error")


def _lowest(outcome: Outcome) -> str:
    scored = [(grade.score, name) for name, grade in outcome.grades.items() if grade.score is not None]
    _, name = min(scored, key=lambda one: one[0])
    return why(name, outcome.grades[name])
