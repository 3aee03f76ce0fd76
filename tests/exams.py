"""Tests led without a review, and what every result of one must be good for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vivavoce.metrics import GoalAchievementJudge
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Model, Request
from vivavoce.penelope import PenelopeAgent, TestResult
from vivavoce.testing.scripted import Scripted


def always(reply: Scripted) -> Callable[[Request], Scripted]:
    return lambda request: reply


def agent(model: ModelLike, judging: Model, **options: Any) -> PenelopeAgent:
    fields: dict[str, Any] = {
        "goal_metric": GoalAchievementJudge(judging),
        "judge": judging,
        "max_turns": 3,
        "review_tester": False,
    }
    return PenelopeAgent(model, **{**fields, **options})


def sound(result: TestResult) -> TestResult:
    """Return a result that went through JSON unchanged, and of which every view was made."""
    assert TestResult.model_validate_json(result.model_dump_json()) == result
    return render(result)


def render(result: TestResult) -> TestResult:
    """Return a result of which every view was made: no markup of anybody's is left, nor what moves a cursor."""
    assert "\n" not in repr(result)
    assert "\x1b" not in str(result)
    page = result._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script" not in page
    assert page.encode()
    return result
