"""Tests that were held in Python, kept in the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from exams import agent
from stage import judge, player
from vivavoce.errors import UsageError
from vivavoce.metrics import GoalAchievementJudge, TurnCountMetric, evaluate_test_result
from vivavoce.penelope import TestResult
from vivavoce.penelope.result import read_test
from vivavoce.run.kept_tests import keep_tests
from vivavoce.store.store import Store


def reply(message: str) -> str:
    return "We offer 30-day returns."


def down(message: str) -> str:
    raise ConnectionError("no route")


def held(target: object = reply, met: bool = True) -> TestResult:
    tester = agent(player(), judge(met), max_turns=2)
    return tester.execute_test(target, "Ask", "Learn about returns", scenario="A caller")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_each_is_a_conversation_of_a_run_with_its_grades_and_all_that_the_tester_left(tmp_path: Path) -> None:
    good, bad, broken = held(), held(met=False), held(down)
    kept = keep_tests({"good": good, "bad": bad, "broken": broken}, name="My tests", store=tmp_path / "t.db")
    assert kept.run.id.startswith("my-tests-")
    assert kept.run.status == "finished"
    values = {one.attempt.key.sample_id: one.scores["goal_achieved"] for one in kept.outcomes()}
    assert [(name, score.state, score.value) for name, score in values.items()] == [
        ("good", "scored", 1.0),
        ("bad", "scored", 0.0),
        ("broken", "error", None),
    ]
    with Store.open(tmp_path / "t.db") as store:
        (attempt,) = store.attempts(kept.run.id, sample_id="good")
    assert attempt.trajectory.test is not None
    again = read_test(attempt.trajectory.test, attempt.trajectory)
    assert again.model_copy(update={"metadata": good.metadata}) == good.model_copy(update={"state": again.state})
    assert '"scenario":"A caller"' in attempt.sample


def test_a_kept_test_is_measured_again_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    run = keep_tests([held(), held()], store=path).run.id
    report = evaluate_test_result(f"{run}/2", ["turn_count", GoalAchievementJudge(judge(True))], store=path)
    assert (report["turn_count"].score, report["goal_achievement"].score) == (1, "fully_achieved")
    with pytest.raises(UsageError, match=f"'{run}' is not a stored conversation; write RUN/SAMPLE"):
        evaluate_test_result(run, [TurnCountMetric()], store=path)


def test_of_a_run_of_one_conversation_the_run_is_name_enough(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    run = keep_tests(held(), store=path).run.id
    for name in (run, "latest"):
        assert evaluate_test_result(name, [TurnCountMetric()], store=path)["turn_count"].score == 1
    with pytest.raises(UsageError, match="'test-123' is not a stored conversation"):
        evaluate_test_result("test-123", [TurnCountMetric()], store=path)


def test_nothing_is_not_kept(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no test to store"):
        keep_tests([], store=tmp_path / "t.db")
    assert not (tmp_path / "t.db").exists()
