"""A scripted tester, a scripted judge, and what every result of a test must be good for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vivavoce.messages import ToolCall
from vivavoce.metrics import GoalAchievementJudge
from vivavoce.models.homemade import ModelLike
from vivavoce.models.model import Model, Request
from vivavoce.penelope import PenelopeAgent, TestResult
from vivavoce.testing import ScriptedModel
from vivavoce.testing.scripted import Scripted


def call(tool: str, /, **arguments: Any) -> list[ToolCall]:
    return [ToolCall(name=tool, args=arguments)]


def say(text: str) -> list[ToolCall]:
    return call("send_message_to_target", message=text)


def verdict(met: bool, confidence: float = 0.5) -> dict[str, Any]:
    level = "fully_achieved" if met else "not_achieved"
    return {"achievement_level": level, "confidence": confidence, "reasoning": "As read.", "evidence": []}


def player(*replies: Scripted) -> ScriptedModel:
    """Return a tester that takes these steps, and then asks one question after the other."""
    left, asked = list(replies), iter(range(1, 1000))
    return ScriptedModel(lambda request: left.pop(0) if left else say(f"question {next(asked)}"), "tester")


def judge(*replies: Scripted | bool) -> ScriptedModel:
    """Return a judge that says this of the goal, and then always the last."""
    left = [verdict(one) if isinstance(one, bool) else one for one in replies]
    return ScriptedModel(lambda request: left.pop(0) if len(left) > 1 else left[0], "judge")


def always(reply: Scripted) -> Callable[[Request], Scripted]:
    return lambda request: reply


def agent(model: ModelLike, judging: Model, **options: Any) -> PenelopeAgent:
    given: dict[str, Any] = {
        "goal_metric": GoalAchievementJudge(judging),
        "judge": judging,
        "max_turns": 3,
        "review_tester": False,
    }
    return PenelopeAgent(model, **{**given, **options})


def sound(result: TestResult) -> TestResult:
    """Return a result that went through JSON unchanged, and of which every view was made."""
    assert TestResult.model_validate_json(result.model_dump_json()) == result
    return shown(result)


def shown(result: TestResult) -> TestResult:
    """Return a result of which every view was made: no markup of anybody's is left, nor what moves a cursor."""
    assert "\n" not in repr(result)
    assert "\x1b" not in str(result)
    page = result._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "<script" not in page
    assert page.encode()
    return result
