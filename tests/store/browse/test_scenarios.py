from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import isnan

import pytest

from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.store.browse import scenarios
from vivavoce.store.browse.scenarios import ScoreText
from vivavoce.store.store import Store

from ..cases import GRADING, RUN, grading, outcome, unfortunate


def put(store: Store, outcomes: Sequence[Outcome]) -> None:
    async def write() -> None:
        async with store.writer(RUN, GRADING, {}) as writer:
            for one in outcomes:
                await writer.put(one)

    asyncio.run(write())


def graded(sample: str, score: float, why: str | None = None, trial: int = 0, turns: Sequence[float] = ()) -> Outcome:
    base = outcome(0, position=trial)
    grades = [Score(turn=i, value=one, reason=f"turn {i}") for i, one in enumerate(turns)]
    grade = Score(value=score, reason=why, turns=tuple(grades) or None)
    attempt = base.attempt.model_copy(update={"key": AttemptKey(sample, "bot", trial)})
    return Outcome(attempt=attempt, scores={"goal": grade}, reward=Score(value=score, reason="too slow"))


def test_every_attempt_comes_in_the_order_of_the_plan(store: Store) -> None:
    put(store, [outcome(2, position=1), outcome(1, position=0)])
    found = store.scenarios.scores(grading())
    assert (found.samples, found.targets, found.scenarios) == (("sample-1", "sample-2"), ("bot",) * 2, ("hash",) * 2)
    assert list(found.graders) == ["exact", "judge", "reward"]


def test_scores_are_by_grader_and_attempt_without_those_of_turns(store: Store) -> None:
    put(store, [outcome(2, position=1), unfortunate(3), outcome(1, position=2)])
    found = store.scenarios.scores(grading())
    assert found.samples == ("sample-3", "sample-2", "sample-1")
    known = {name: (one.values.tolist()[1:], one.passes.tolist()) for name, one in found.graders.items()}
    assert known == {
        "exact": ([1.0, 1.0], [False, True, True]),
        "judge": ([0.25, 0.25], [False, False, False]),
        "reward": ([0.5, 0.5], [False, False, False]),
    }
    assert all(isnan(one.values[0]) for one in found.graders.values())


def test_what_has_no_score_keeps_its_state(store: Store) -> None:
    put(store, [unfortunate(1), outcome(2, position=1)])
    found = store.scenarios.scores(grading())
    states = {name: one.unscored for name, one in found.graders.items()}
    assert states == {"exact": {0: "error"}, "judge": {0: "skipped"}, "reward": {0: "error"}}


def lowest(store: Store, name: str, samples: Sequence[str]) -> list[tuple[str, ScoreText]]:
    attempts = store.scenarios.numbers(RUN, "bot", samples)
    found = store.scenarios.lowest_scores(grading(), name, [number for number, _ in attempts])
    return [(sample, found[number]) for number, sample in attempts]


def test_what_is_said_comes_with_the_lowest_turn_alone(store: Store) -> None:
    put(store, [graded("a", 0.5, "why", turns=(1.0, 0.0, 0.0)), graded("b", 1.0)])
    ((sample, said),) = lowest(store, "goal", ["a"])
    assert (sample, said.value, said.reason) == ("a", 0.5, "why")
    assert [(one.turn, one.reason) for one in said.turns or ()] == [(1, "turn 1")]


def test_trials_of_a_sample_come_in_their_order(store: Store) -> None:
    put(store, [graded("a", 0.25, trial=1), graded("a", 0.75, trial=0)])
    assert [said.value for _, said in lowest(store, "goal", ["a"])] == [0.75, 0.25]


def test_the_reward_says_why_as_well(store: Store) -> None:
    put(store, [graded("a", 0.5)])
    assert [said.reason for _, said in lowest(store, "reward", ["a"])] == ["too slow"]


def test_what_could_not_be_scored_says_so(store: Store) -> None:
    put(store, [unfortunate(1)])
    ((_, said),) = lowest(store, "exact", ["sample-1"])
    assert said.value is None
    assert said.failure is not None


def test_attempts_have_the_numbers_of_the_plan(store: Store) -> None:
    put(store, [graded("a", 0.25, trial=1), graded("a", 0.75, trial=0), graded("b", 0.5, trial=2)])
    found = store.scenarios.scores(grading())
    assert list(zip(found.numbers, found.samples, strict=True)) == store.scenarios.numbers(RUN, "bot", ["b", "a"])


def test_more_attempts_than_one_query_takes_are_all_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "AT_ONCE", 2)
    put(store, [graded(f"s{i}", 0.5) for i in range(5)])
    names = [f"s{i}" for i in range(5)]
    assert {sample for sample, _ in lowest(store, "goal", names)} == set(names)


def test_a_sample_without_a_goal_is_called_by_its_id(store: Store) -> None:
    asked = graded("a", 1.0)
    told = asked.attempt.model_copy(update={"sample": '{"goal": "A refund"}', "key": AttemptKey("b", "bot", 0)})
    put(store, [asked, asked.model_copy(update={"attempt": told})])
    assert store.scenarios.titles(RUN, "bot", ["a", "b", "c"]) == {"a": "a", "b": "A refund"}
