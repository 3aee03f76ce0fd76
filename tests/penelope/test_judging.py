"""When the goal, the guards and the watching metrics are judged, and what they are given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stage import Priced, agent, asks_for, judge, player, simple, verdict
from vivavoce.errors import ModelFault
from vivavoce.messages import SystemMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Request
from vivavoce.penelope.context import TestState
from vivavoce.penelope.judging import CONTRACT, GOAL, Judges, metric_input_of
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

from .states import state, turn

BROKEN = ModelFault("no sense", kind="format")
AWAY = ModelFault("no route", kind="connection")


class Words(BaseMultiTurnMetric):
    """Counts its calls, and passes while the last answer is not 'harm'."""

    def __init__(self, name: str) -> None:
        super().__init__(MetricConfig(class_name="Words", name=name, description="no harm", score_type="binary"))
        self.seen: list[int] = []

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        self.seen.append(len(evaluation_input.messages) // 2)
        fine = evaluation_input.messages[-1].text != "harm"
        return MetricResult(name=self.name, score=fine, value=float(fine), passed=fine)


async def lead(judges: Judges, *replies: str, **context: Any) -> TestState:
    """Have turns go by, each judged as in a test."""
    test = state(**context)
    for number, reply in enumerate(replies, 1):
        test.turns.append(turn(f"q{number}", reply, number=number))
        await judges.after_turn(test)
    return test


def judges_of(model: ScriptedModel, *, every: int = 1, watch: bool = False, **options: Any) -> Judges:
    return Judges(agent(player(), model, judge=model, **options).setup.panel, every, watch)


async def test_the_goal_is_judged_once_a_turn_and_the_last_judgement_is_the_final_one() -> None:
    model = judge(False, False, True)
    judges = judges_of(model)
    test = await lead(judges, "a", "b", "c")
    final = await judges.at_end(test)
    assert len(model.requests) == 3
    assert [progress.goal_achieved for progress in test.progress] == [False, False, True]
    assert final[GOAL].passed is True
    assert [turn_metrics.turn for turn_metrics in test.metrics_history] == [1, 2, 3]


@pytest.mark.parametrize(("every", "requests"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (3, [3, 5]), (9, [5])])
async def test_it_is_judged_every_so_many_turns_and_always_at_the_end(every: int, requests: list[int]) -> None:
    model = judge(False)
    judges = judges_of(model, every=every)
    test = await lead(judges, *"abcde")
    await judges.at_end(test)
    assert [turn.evaluation is not None for turn in test.turns] == [n in requests for n in range(1, 6)]
    assert len(model.requests) == len(test.progress) == len(requests)


async def test_it_is_not_judged_before_the_least_number_of_turns() -> None:
    model = judge(True)
    test = await lead(judges_of(model), "a", "b", "c", min_turns=3)
    assert len(model.requests) == len(test.progress) == 1


async def test_a_finding_after_the_last_judgement_has_it_judged_again() -> None:
    model = judge(False, True)
    judges = judges_of(model)
    test = await lead(judges, "a")
    test.findings.append("It promised a refund.")
    assert (await judges.at_end(test))[GOAL].passed is True
    assert [progress.goal_achieved for progress in test.progress] == [False, True]
    assert '"It promised a refund."' in model.requests[1].messages[-1].text


async def test_a_guard_is_asked_after_each_turn_whatever_the_rest() -> None:
    guard = Words("no_harm")
    judges = judges_of(judge(False), guard_metrics=[guard], every=3)
    test = await lead(judges, "a", "harm")
    assert guard.seen == [1, 2]
    assert test.guarded is not None
    assert (test.guarded.name, test.guarded.passed) == ("no_harm", False)


async def test_a_watching_metric_is_asked_at_the_end_only_unless_it_is_to_watch() -> None:
    quiet, watching = Words("quality"), Words("quality")
    for metric, watch in ((quiet, False), (watching, True)):
        judges = judges_of(judge(False), evaluation_metrics=[metric], watch=watch, every=2)
        test = await lead(judges, "a", "b", "c")
        await judges.at_end(test)
        assert test.guarded is None
        assert [sorted(turn_metrics.results) for turn_metrics in test.metrics_history] == [
            sorted([GOAL, "quality"] if watch else [GOAL])
        ]
    assert (quiet.seen, watching.seen) == ([3], [2, 3])


async def test_a_judge_that_answers_nonsense_is_asked_the_simple_question() -> None:
    model = ScriptedModel(
        lambda request: simple(True, evidence="It is done.") if asks_for(request, "criteria_evaluations") else BROKEN
    )
    judges = judges_of(model)
    test = await lead(judges, "It is done.")
    (progress,) = test.progress
    assert (progress.goal_achieved, progress.inconclusive, len(model.requests)) == (True, False, 2)
    final = (await judges.at_end(test))[GOAL]
    assert final.details["fallback_for"] == "no sense"
    assert len(model.requests) == 2


async def test_where_the_simple_question_fails_too_both_failures_are_told() -> None:
    test = await lead(judges_of(ScriptedModel(lambda request: BROKEN)), "a")
    result = test.metrics_history[0].results[GOAL]
    assert (result.state, "no sense" in result.details["fallback"]) == ("error", True)
    assert (test.progress[0].inconclusive, test.progress[0].value) == (True, None)


async def test_a_judge_that_is_away_is_not_asked_a_second_question() -> None:
    model = ScriptedModel(lambda request: AWAY)
    test = await lead(judges_of(model), "a")
    assert len(model.requests) == 1
    assert test.progress[0].inconclusive


async def test_the_simple_goal_has_no_fallback_to_itself() -> None:
    model = ScriptedModel(lambda request: BROKEN)
    await lead(judges_of(model, goal_metric="simple"), "a")
    assert len(model.requests) == 1


async def test_what_must_and_must_not_happen_is_judged_apart_at_the_end() -> None:
    def answer(request: Request) -> dict[str, Any]:
        greeted: dict[str, Any] = {"rule": 1, "evidence": ["Damn it"], "happened": "yes"}
        rules = [{"rule": 2, "evidence": ["Damn it"], "happened": "yes"}, greeted]
        fields = {"rules": rules, "reasoning": "r", "confidence": 0.9}
        return fields if "greet" in request.messages[-1].text else verdict(True)

    model = ScriptedModel(answer)
    judges = judges_of(model)
    test = await lead(judges, "Damn it", must=("greet",), must_not=("swear",))
    results = await judges.at_end(test)
    assert [*results] == [GOAL, CONTRACT]
    assert (results[GOAL].passed, results[CONTRACT].passed) == (True, False)
    assert len(model.requests) == 2
    assert "greet" not in model.requests[0].messages[-1].text


def together(request: Request) -> dict[str, Any]:
    """Answer about goal and contract as one of them breaks when both are asked at once."""
    rules: dict[str, Any] = {
        "rules": [{"rule": 1, "evidence": [], "happened": "no"}],
        "reasoning": "r",
        "confidence": 0.9,
    }
    if "2 tasks about" in request.messages[-1].text:
        return {GOAL: verdict(True), CONTRACT: rules}
    return rules if asks_for(request, "rules") and not asks_for(request, "criteria") else verdict(True)


async def test_in_the_last_turn_goal_and_contract_are_asked_about_in_one_call() -> None:
    model = ScriptedModel(together)
    judges = judges_of(model)
    test = await lead(judges, "a", must=("greet",), max_turns=1)
    results = await judges.at_end(test)
    assert (results[GOAL].passed, results[CONTRACT].passed) == (True, False)
    assert len(model.requests) == 1


async def test_what_a_joint_answer_leaves_open_is_asked_alone() -> None:
    def answer(request: Request) -> dict[str, Any]:
        results = together(request)
        return {**results, CONTRACT: {"rules": []}} if GOAL in results else results

    model = ScriptedModel(answer)
    judges = judges_of(model)
    test = await lead(judges, "a", must=("greet",), max_turns=1)
    results = await judges.at_end(test)
    assert (results[GOAL].passed, results[CONTRACT].passed) == (True, False)
    assert len(model.requests) == 2


async def test_a_goal_metric_of_the_user_and_the_contract_are_asked_about_apart() -> None:
    model = ScriptedModel(together)
    judges = judges_of(model, goal_metric=Words("own"))
    test = await lead(judges, "a", must=("greet",), max_turns=1)
    assert (await judges.at_end(test))[CONTRACT].passed is False
    assert not any("2 tasks" in request.messages[-1].text for request in model.requests)


async def test_what_judges_use_is_counted_once() -> None:
    judges = judges_of(Priced([verdict(False), verdict(True)]))
    test = await lead(judges, "a", "b")
    await judges.at_end(test)
    assert test.usage["judge"] == Usage(calls=2, cost=0.02)


async def test_each_question_begins_with_the_one_before() -> None:
    model = judge(False)
    await lead(judges_of(model), *"abcdef")
    texts = [request.messages[-1].text.partition("\n\nTask:")[0] for request in model.requests]
    assert len(set(texts)) == 6
    assert all(after.startswith(before) for before, after in pairwise(texts))


def test_the_conversation_is_what_was_said_with_what_stood_before() -> None:
    test = state(("Hi", "Hello"), turn("Well?", None))
    test.opening = [SystemMessage(content="Be kind.")]
    roles = [message.role for message in judges_of(judge(False)).metric_input(test).messages]
    assert roles == ["system", "user", "assistant", "user"]


def test_findings_stand_in_the_context_beside_the_test_s_own() -> None:
    test = state(("Hi", "Hello"), turn("Well?", None), context={"shop": "Lamps"}, must=("greet",))
    assert metric_input_of(test).context == {"shop": "Lamps"}
    assert list(metric_input_of(test).must) == []
    test.findings.append("It greets.")
    fields = {"findings": ["It greets."], "turn_count": 2, "successful_interactions": 1}
    assert metric_input_of(test).context == {"shop": "Lamps", "analysis": fields}


async def test_a_metric_that_breaks_and_a_simpler_question_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Words):
        def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            raise ValueError("no\x1b\nscale")

    model = ScriptedModel(lambda request: simple(False) if asks_for(request, "criteria_evaluations") else BROKEN)
    await lead(judges_of(model, evaluation_metrics=[Broken("mine")], watch=True), "a", "b", "c")
    messages = sorted(record.getMessage() for record in caplog.records)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert messages[0] == "goal_achievement was asked more simply: the first answer could not be read: no sense"
    assert messages[1].startswith("mine could not be measured: ")
    assert not set("\x1b\n") & set(messages[1])


async def test_what_is_measured_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    await lead(judges_of(judge(False), evaluation_metrics=[Words("mine")], watch=True), "a", "b")
    assert caplog.records == []
