"""The worst samples of a run, each with one line of why."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from vivavoce.records.counting import turn_label
from vivavoce.records.run import AttemptKey, ErrorRow, Grading, Outcome, ScoreRow
from vivavoce.records.score import Score
from vivavoce.report.text import one_line
from vivavoce.store.store import Store

WIDTH = 200
"""Characters of a reason at most."""


@dataclass(frozen=True, slots=True)
class Worst:
    """An attempt that went badly, or all those of one target that broke in the same way, of which `key` is the first.

    `score` is the mean over the graders, None where something could not be scored. `group` is how those are called that
    broke in the same way, such as `7 samples`, None for a single one.
    """

    key: AttemptKey
    score: float | None
    why: str
    group: str | None = None


@dataclass(frozen=True, slots=True)
class WorstSamples:
    """The worst samples, and how many more there are that went badly."""

    shown: Sequence[Worst]
    more: int


def worst(store: Store, grading: Grading, limit: int = 5) -> WorstSamples:
    """Return up to `limit` errors, equal ones in one, then up to `limit` of those not passed, the lowest first.

    Only the scores are read, and the conversations of those with a score that are returned. Among equals the earlier
    comes first.
    """
    seen = _Seen()
    lowest = heapq.nsmallest(limit, seen.low(store.scores(grading.id)))
    groups = seen.groups(store.errors(grading.id)) if seen.broken else []
    found = [one for one, _ in groups[:limit]]
    found += [Worst(key, mean, _lowest(outcome_of(store, grading, key))) for mean, _, key in lowest]
    more = sum(count for _, count in groups[limit:]) + seen.below - len(lowest)
    return WorstSamples(found, more)


@dataclass(slots=True)
class _Seen:
    """What a walk through the scores counts: all attempts by target, those with errors, those that did not pass."""

    attempts: Counter[str] = field(default_factory=Counter[str])
    broken: int = 0
    below: int = 0
    repeated: bool = False

    def low(self, rows: Iterable[ScoreRow]) -> Iterator[tuple[float, int, AttemptKey]]:
        """Yield mean, place and key of each attempt of which a score did not pass."""
        for place, (key, group) in enumerate(groupby(rows, lambda row: row.key)):
            said = list(group)
            self.attempts[key.target] += 1
            self.repeated |= key.trial > 0
            if any(row.state == "error" for row in said):
                self.broken += 1
            elif any(row.passed is False for row in said) and (mean := _mean(said)) is not None:
                self.below += 1
                yield mean, place, key

    def groups(self, rows: Iterable[ErrorRow]) -> list[tuple[Worst, int]]:
        """Return what broke in the same way, with how many attempts that are, in the order of the first of each."""
        firsts: dict[tuple[str, str], AttemptKey] = {}
        counts = Counter[tuple[str, str]]()
        for row in rows:
            kind = (row.key.target, _broken(row))
            firsts.setdefault(kind, row.key)
            counts[kind] += 1
        return [
            (Worst(key, None, kind[1], self._name(kind[0], counts[kind])), counts[kind]) for kind, key in firsts.items()
        ]

    def _name(self, target: str, count: int) -> str | None:
        if count == 1:
            return None
        if count == self.attempts[target]:
            return f"all {count:,}"
        return f"{count:,} {'conversations' if self.repeated else 'samples'}"


def why(name: str, said: Score) -> str:
    """Return in one line why a grader gave what it gave, from the lowest of the turns where there are turns."""
    if said.failure is not None:
        return one_line(f"{name}: {said.failure}", WIDTH)
    if scores := [(turn.value, turn) for turn in said.turns or () if turn.value is not None]:
        value, lowest = min(scores, key=lambda one: one[0])
        return one_line(f"{name}, {turn_label(lowest.turn)}: {lowest.reason or f'scored {value:.3g}'}", WIDTH)
    plain = said.state if said.value is None else f"scored {said.value:.3g}"
    return one_line(f"{name}: {said.reason or plain}", WIDTH)


def outcome_of(store: Store, grading: Grading, key: AttemptKey) -> Outcome:
    """Return what came of one attempt."""
    return next(found for found in store.outcomes(grading.id, sample_id=key.sample_id) if found.attempt.key == key)


def _mean(rows: Sequence[ScoreRow]) -> float | None:
    values = [row.value for row in rows if row.kind == "grade" and row.value is not None]
    return math.fsum(values) / len(values) if values else None


def _broken(row: ErrorRow) -> str:
    said = str(row.failure) if row.failure is not None else row.rationale or "error"
    return one_line(said if row.name is None else f"{row.name}: {said}", WIDTH)


def _lowest(outcome: Outcome) -> str:
    scored = [
        (score.passed is not False, score.value, name)
        for name, score in _all(outcome).items()
        if score.value is not None
    ]
    _, _, name = min(scored)
    return why(name, _all(outcome)[name])


def _all(outcome: Outcome) -> dict[str, Score]:
    return {**outcome.scores, **({} if outcome.reward is None else {"reward": outcome.reward})}
