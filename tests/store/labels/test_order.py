from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score, skipped
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN


def keep(store: Store, grades: Sequence[Score]) -> None:
    """Keep conversations with these grades."""

    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number, grade in enumerate(grades):
                attempt = cases.outcome(number, number).attempt
                await writer.put(Outcome(attempt=attempt, scores={"judge": grade}))

    asyncio.run(put())


def numbers(keys: Sequence[AttemptKey]) -> list[int]:
    return [int(key.sample_id.removeprefix("sample-")) for key in keys]


def graded(score: float, passed: bool | None = None, **extra: Any) -> Score:
    return Score(value=score, passed=passed, extra=extra)


def test_scores_near_to_where_passing_begins_come_first(store: Store) -> None:
    keep(store, [graded(score, passed=score >= 0.6) for score in (0.0, 0.5, 1.0, 0.65, 0.2)])
    found = numbers(store.labels.in_doubt(store.grading(RUN), "judge"))
    assert (set(found[:2]), found[2:]) == ({1, 3}, [4, 2, 0])


def test_votes_that_were_split_come_before_all_others_the_closest_first(store: Store) -> None:
    shares = (1.0, 0.8, 1.0, 0.6)
    keep(store, [graded(1.0, agreement=share, votes=[]) for share in shares])
    assert numbers(store.labels.in_doubt(store.grading(RUN), "judge")) == [3, 1, 0, 2]


def test_what_has_no_score_is_not_asked_about(store: Store) -> None:
    keep(store, [graded(1.0), skipped("no judge"), graded(0.0)])
    grading = store.grading(RUN)
    assert numbers(store.labels.in_doubt(grading, "judge")) == [0, 2]
    assert sorted(numbers(store.labels.at_random(grading, "judge", 3))) == [0, 2]
    assert store.labels.in_doubt(grading, "another") == []


def test_only_so_many_are_put_in_order(store: Store) -> None:
    keep(store, [graded(number / 10) for number in range(10)])
    grading = store.grading(RUN)
    assert numbers(store.labels.in_doubt(grading, "judge", 2)) == [9, 8]
    assert len(store.labels.at_random(grading, "judge", 3, 4)) == 4


def test_a_seed_always_draws_the_same_and_another_seed_something_else(store: Store) -> None:
    keep(store, [graded(1.0) for _ in range(30)])
    grading = store.grading(RUN)
    first = numbers(store.labels.at_random(grading, "judge", 3))
    assert sorted(first) == list(range(30))
    assert numbers(store.labels.at_random(grading, "judge", 3)) == first
    assert numbers(store.labels.at_random(grading, "judge", 4)) != first


def test_without_a_grader_any_conversation_is_drawn(store: Store) -> None:
    keep(store, [skipped("no judge")])
    assert numbers(store.labels.at_random(store.grading(RUN), "", 1)) == [0]
