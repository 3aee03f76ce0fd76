"""In which order the graders of conversations ask their judges."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, Deferred
from vivavoce.grading.extractors import last_assistant
from vivavoce.grading.grader import Grader
from vivavoce.grading.graders import Case
from vivavoce.records.run import Attempt, AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.run.attempt import Grades, Task, hold
from vivavoce.samples.sample import Sample

from .experiments import recorded


def asking(name: str, seen: list[str], judged: bool = True, error: BaseException | None = None) -> Grader:
    """Return a grader that takes a second, and notes when it begins and ends with which conversation."""

    async def score(case: Case) -> Score:
        seen.append(f"{case.sample.id} {name}")
        await asyncio.sleep(1)
        seen.append(f"{case.sample.id} {name} done")
        if error is not None:
            raise error
        return Score(value=1.0)

    return Grader(name, last_assistant, score, "none", name, judged=judged, waits=True, scope="conversation")


def needs_more(sample: Sample) -> str:
    return f"needs more than {sample.id} has"


async def graded(grades: Grades, count: int) -> list[Outcome]:
    async def one(number: int) -> Outcome:
        sample = recorded(count)[number]
        return await grades.grade(await attempt(sample), sample)

    return await asyncio.gather(*map(one, range(count)))


async def attempt(sample: Any) -> Attempt:
    async def nobody(turn: Any) -> None:
        del turn

    return await hold(Task(AttemptKey(sample.id, "bot", 0), sample), nobody)


async def test_the_first_judge_is_asked_alone_and_then_the_others_at_once() -> None:
    seen: list[str] = []
    (outcome,) = await graded(Grades(tuple(asking(name, seen) for name in "abc")), 1)
    assert seen == ["s0 a", "s0 a done", "s0 b", "s0 c", "s0 b done", "s0 c done"]
    assert list(outcome.scores) == ["a", "b", "c"]


async def test_graders_that_ask_no_judge_go_one_by_one_and_scores_keep_the_order_of_the_suite() -> None:
    seen: list[str] = []
    graders = (asking("a", seen), asking("x", seen, judged=False), asking("b", seen), asking("y", seen, judged=False))
    (outcome,) = await graded(Grades(graders), 1)
    assert [line.partition(" ")[2] for line in seen] == ["x", "x done", "y", "y done", "a", "a done", "b", "b done"]
    assert list(outcome.scores) == ["a", "x", "b", "y"]


async def test_a_conversation_with_many_judges_takes_more_places() -> None:
    seen: list[str] = []
    await graded(Grades(tuple(asking(name, seen) for name in "abcd")).in_places(4), 3)
    order = [line.split()[0] for line in seen]
    before = order[: order.index("s2")]
    assert 8 in (before.count("s0"), before.count("s1")), "there is no place before one of the two has ended"
    assert set(order[:2]) == {"s0", "s1"}, "two have places at the same time"
    assert [order.count(sample) for sample in ("s0", "s1", "s2")] == [8, 8, 8]


async def test_a_grader_that_does_not_apply_takes_no_place() -> None:
    seen: list[str] = []
    never = [replace(asking(name, seen), unmet=needs_more) for name in "bcdefg"]
    await graded(Grades((asking("a", seen), *never)).in_places(3), 3)
    assert seen[:3] == ["s0 a", "s1 a", "s2 a"]


async def test_where_the_first_judge_meets_the_limit_the_others_are_not_asked() -> None:
    seen: list[str] = []
    graders = (asking("a", seen, error=BudgetExhausted("over")), asking("b", seen))
    with pytest.raises(BudgetExhausted):
        await graded(Grades(graders), 1)
    assert seen == ["s0 a", "s0 a done"]


async def test_where_an_answer_comes_later_all_judges_are_asked() -> None:
    seen: list[str] = []
    graders = (asking("a", seen, error=Deferred("later")), asking("b", seen))
    with pytest.raises(Deferred):
        await graded(Grades(graders), 1)
    assert "s0 b done" in seen
