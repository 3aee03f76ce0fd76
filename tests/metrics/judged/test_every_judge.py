"""What holds for each metric whose score is computed from a judge's answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vivavoce.metrics.checklist import ChecklistReply
from vivavoce.metrics.factory import create_metric
from vivavoce.metrics.judged.goal_reply import GoalReply
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import evaluation_input
from vivavoce.metrics.prompts import HERE
from vivavoce.metrics.types import Reading
from vivavoce.metrics.violations import ViolationsReply
from vivavoce.models.model import Request
from vivavoce.testing import ScriptedModel

OF_ASSISTANT = [
    "coherence",
    "context_retention",
    "data_leakage",
    "knowledge_retention",
    "prompt_injection",
    "response_quality",
    "role_adherence",
    "safety",
    "toxicity",
    "turn_efficiency",
    "turn_relevancy",
]
NAMES = [*OF_ASSISTANT, "conversation_completeness", "goal_achievement"]
SYSTEM = {"role": "system", "content": "You are a clerk."}
ASKED = {"role": "user", "content": "Which accounts do you offer?"}
ANSWERED = {"role": "assistant", "content": "A giro account."}
CONVERSATION = [SYSTEM, ASKED, ANSWERED, {"role": "user", "content": "Thanks!"}, ANSWERED, ASKED, ANSWERED]


def good(request: Request) -> dict[str, Any]:
    """Answer any of them as well as can be."""
    shape = request.schema
    said = {"reasoning": "So it is.", "confidence": 1}
    if isinstance(shape, type) and issubclass(shape, ChecklistReply):
        items = shape.expected or ("the one thing",)
        return {**said, "checks": [{"item": item, "evidence": ["A giro account."], "answer": "yes"} for item in items]}
    if shape is ViolationsReply:
        return {**said, "violations": []}
    if isinstance(shape, type) and issubclass(shape, GoalReply) and shape.asked.rules:
        return {**said, "rules": [{"rule": 1, "evidence": ["A giro account."], "happened": "yes"}], "breaches": []}
    outcome = {"outcome": "told", "kind": "fact", "evidence": ["A giro account."], "met": True}
    return {**said, "criteria": [outcome], "breaches": []}


def judge(name: str, model: ScriptedModel | None, **options: Any) -> JudgedMetric:
    metric = create_metric(name, model=model, **options)
    assert isinstance(metric, JudgedMetric)
    assert metric.name == name
    return metric


@pytest.mark.parametrize("name", NAMES)
def test_the_best_verdict_passes_in_one_call(name: str) -> None:
    model = ScriptedModel(good)
    result = judge(name, model).evaluate(CONVERSATION, goal="Learn it")
    assert (result.state, result.value, result.passed, result.confidence) == ("scored", 1.0, True, 1.0)
    assert len(model.requests) == 1
    assert result.fingerprint


@pytest.mark.parametrize("scope", ["conversation", "window", "turn"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "empty", [[], [SYSTEM], [{"role": "tool", "content": "nothing"}]], ids=["no message", "policy alone", "tool alone"]
)
def test_where_nobody_speaks_nothing_is_scored_and_nothing_asked(
    name: str, scope: str, empty: list[dict[str, Any]]
) -> None:
    model = ScriptedModel([])
    result = judge(name, model, scope=scope).evaluate(empty, goal="Learn it")
    assert (result.state, result.score, result.passed) == ("skipped", None, None)
    assert result.reasoning
    assert model.requests == []


@pytest.mark.parametrize("silence", [[], [{"role": "assistant", "content": ""}], [{"role": "assistant"}]])
@pytest.mark.parametrize("scope", ["conversation", "window", "turn"])
@pytest.mark.parametrize("name", OF_ASSISTANT)
def test_an_assistant_that_says_nothing_has_not_passed(name: str, scope: str, silence: list[dict[str, Any]]) -> None:
    model = ScriptedModel([])
    result = judge(name, model, scope=scope).evaluate([SYSTEM, ASKED, *silence])
    assert (result.state, result.passed) == ("skipped", None)
    assert result.reasoning == "the assistant says and does nothing in this conversation"


@pytest.mark.parametrize("name", NAMES)
def test_without_a_judge_it_is_skipped_and_says_so(name: str) -> None:
    result = judge(name, None).evaluate(CONVERSATION, goal="Learn it")
    assert (result.state, result.reasoning) == ("skipped", "needs a judge: give a model, or set VIVAVOCE_JUDGE")


SPOILT: dict[str, Callable[[dict[str, Any]], dict[str, Any] | str]] = {
    "empty": lambda verdict: {},
    "prose": lambda verdict: "Looks good to me!",
    "range": lambda verdict: {**verdict, "confidence": 57},
    "nan": lambda verdict: {**verdict, "confidence": float("nan")},
    "a number in words": lambda verdict: {**verdict, "confidence": "0.9"},
    "a score of its own": lambda verdict: {**verdict, "score": 1.0},
    "null": lambda verdict: {**verdict, "reasoning": None},
    "incomplete": lambda verdict: {name: value for name, value in verdict.items() if name != "reasoning"},
    "no list": lambda verdict: {name: "all" if isinstance(value, list) else value for name, value in verdict.items()},
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_verdict_that_is_none_is_an_error_and_never_a_score(
    name: str, spoil: Callable[[dict[str, Any]], dict[str, Any] | str]
) -> None:
    model = ScriptedModel(lambda request: spoil(good(request)))
    result = judge(name, model).evaluate(CONVERSATION, goal="Learn it")
    assert (result.state, result.score, result.value, result.passed) == ("error", "error", None, None)
    assert result.error is not None
    assert result.error.blame == "judge"


@pytest.mark.parametrize("name", NAMES)
def test_turn_by_turn_each_is_named_and_sees_those_before_it_alone(name: str) -> None:
    model = ScriptedModel(good)
    result = judge(name, model, scope="turn").evaluate(CONVERSATION, goal="Learn it", outcomes=("told",))
    assert result.state == "scored"
    asked = [request.messages[-1].text for request in model.requests]
    assert len(asked) == 3
    for turn, text in enumerate(asked, 1):
        said, _, task = text.partition("\n\n")
        assert f" turn {turn}; earlier turns are context" in task
        assert said.count("\nturn ") == turn
        assert asked[-1].startswith(said)


@pytest.mark.parametrize("name", OF_ASSISTANT)
def test_a_turn_that_nobody_answered_is_not_asked_about(name: str) -> None:
    model = ScriptedModel(good)
    result = judge(name, model, scope="turn").evaluate([SYSTEM, ASKED, ANSWERED, ASKED, ASKED, ANSWERED])
    assert [turn.turn for turn in result.turns or ()] == [0, 2]


@pytest.mark.parametrize("name", NAMES)
def test_the_conversation_comes_first_and_is_the_same_for_all(name: str) -> None:
    (asked,) = judge(name, None).questions(Reading(evaluation_input(CONVERSATION, goal="Learn it")))
    (other,) = judge("safety", None).questions(Reading(evaluation_input(CONVERSATION, goal="Learn it")))
    said, _, task = asked.request.messages[-1].text.partition("\n\n")
    assert other.request.messages[-1].text.startswith(f"{said}\n\n")
    assert asked.request.messages[0] == other.request.messages[0]
    assert task.startswith("Task:")
    assert len(task.split()) <= (250 if name == "goal_achievement" else 130)


@pytest.mark.parametrize("name", NAMES)
def test_the_prompt_stands_beside_the_code_and_can_be_replaced(name: str) -> None:
    metric = judge(name, None)
    assert (HERE / metric.template).with_suffix(".py").exists()
    replaced = judge(name, None, prompt="Task: say yes to {{ goal }}.")
    (asked,) = replaced.questions(Reading(evaluation_input(CONVERSATION, goal="Learn it")))
    assert asked.request.messages[-1].text.endswith('\n\nTask: say yes to "Learn it".')
    assert replaced.fingerprint != metric.fingerprint
