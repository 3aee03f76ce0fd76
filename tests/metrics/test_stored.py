"""Evaluating again what is in the store."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from vivavoce import RunOptions, UsageError, evaluate
from vivavoce.metrics import GoalAchievementJudge, TurnCountMetric, evaluate_test_result
from vivavoce.settings import settings
from vivavoce.testing import LoopbackServer, ScriptedModel

VERDICT = {"achievement_level": "fully_achieved", "confidence": 0.9, "reasoning": "It was told.", "evidence": ["auto"]}


def rows(**more: Any) -> list[dict[str, Any]]:
    talk = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]
    return [{"id": "one", "goal": "the user learns the offer", "messages": talk, **more}]


def stored(given: list[dict[str, Any]]) -> str:
    return evaluate(given, [TurnCountMetric(threshold=9)], options=RunOptions(cache=False)).run.id


def test_a_stored_conversation_is_judged_by_the_goal_of_its_sample() -> None:
    model = ScriptedModel([VERDICT])
    report = evaluate_test_result(f"{stored(rows())}/one", [GoalAchievementJudge(model), TurnCountMetric()])
    goal = report.get_metric("goal_achievement")
    assert (goal.passed, goal.evidence[0].verified, report["turn_count"].score) == (True, True, 1.0)
    assert "the user learns the offer" in model.requests[0].messages[-1].text


def test_a_conversation_without_readable_words_is_not_judged_as_an_empty_one() -> None:
    stored(rows())
    with sqlite3.connect(settings().store) as file:  # as a store from before the rule may hold it
        file.execute("UPDATE turns SET messages = ?", ('[{"role": "user", "text": "Hello."}]',))
    with pytest.raises(UsageError, match="sample 'one': message 0: has no 'content', and the text under 'text'"):
        evaluate_test_result("latest/one", ["turn_count"])


def test_a_metric_by_name_is_judged_by_the_model_that_is_given() -> None:
    stored(rows())
    assert evaluate_test_result("latest/one", ["goal_achievement"], model=ScriptedModel([VERDICT])).all_passed


def test_a_metric_by_name_is_judged_by_the_model_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    stored(rows())
    assert evaluate_test_result("latest/one", ["goal_achievement"])["goal_achievement"].state == "skipped"
    with LoopbackServer(lambda body: VERDICT) as server:
        monkeypatch.setenv("VIVAVOCE_JUDGE", f"{server.base_url}#m")
        assert evaluate_test_result("latest/one", ["goal_achievement"])["goal_achievement"].state != "skipped"
        assert server.requests


def test_one_of_several_trials_is_named_after_a_hash() -> None:
    run = stored([*rows(trial=0), *rows(trial=1)])
    for name in ("one", "one#1", "one#2"):
        assert evaluate_test_result(f"{run}/{name}", ["turn_count"])["turn_count"].score == 1.0
    with pytest.raises(UsageError, match="its trials are 1, 2"):
        evaluate_test_result(f"{run}/one#3", ["turn_count"])
    with pytest.raises(UsageError, match="trials count from 1, so the first is 'one#1'"):
        evaluate_test_result(f"{run}/one#0", ["turn_count"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "write RUN/SAMPLE"),
        ("latest/", "write RUN/SAMPLE"),
        ("latest/onne", "did you mean 'one'"),
        ("x/one", "no run"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(name: str, said: str) -> None:
    stored(rows())
    with pytest.raises(UsageError, match=said):
        evaluate_test_result(name, ["turn_count"])
