"""The faults of Penelope as it was shipped with the platform it comes from: each is something that must hold here."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from exams import agent, sound
from stage import call, judge, player, say, verdict
from vivavoce.errors import RateLimited, UsageError
from vivavoce.messages import FunctionCall, SystemMessage, ToolCall, ToolMessage
from vivavoce.metrics import (
    ContextRetentionMetric,
    ConversationCoherenceMetric,
    GoalAchievementJudge,
    SafetyMetric,
    TurnEfficiencyMetric,
)
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.openai import OpenAIModel
from vivavoce.penelope import PenelopeAgent, TestResult
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.penelope.tools.extract import ExtractTool
from vivavoce.testing import LoopbackServer, ScriptedModel
from vivavoce.testing.scripted import Scripted

ANALYSE = call("analyze_response", analysis_focus="tone")
NEVER = 0.05
"""Seconds after which a test that hangs is over."""


def echo(message: str) -> str:
    return f"You said: {message}"


def held(
    model: ScriptedModel | None = None, judging: ScriptedModel | None = None, target: Any = echo, **options: Any
) -> TestResult:
    made = agent(model or player(), judging or judge(False), **options)
    return sound(made.execute_test(target, goal="Return a lamp"))


class Counting(BaseMultiTurnMetric):
    """A metric of one's own that notes what it was asked, and fails where it is told to."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        super().__init__(MetricConfig(name=name, class_name="Counting", score_type="binary"))
        self.given: list[MultiTurnEvaluationInput] = []
        self.error = error

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        self.given.append(evaluation_input)
        if self.error:
            raise self.error
        return MetricResult(score=True, passed=True, name=self.name)


# 1


@pytest.mark.parametrize("max_turns", [1, 2, 3, 4])
def test_a_goal_that_is_met_in_the_last_turn_is_met(max_turns: int) -> None:
    result = held(judging=judge(*[False] * (max_turns - 1), True), max_turns=max_turns)
    assert (result.status.name, result.goal_achieved, result.turns_used) == ("SUCCESS", True, max_turns)
    assert result.evaluation["goal_achievement"].details["is_successful"] is True


@pytest.mark.parametrize("turns", [1, 3])
def test_a_goal_that_is_met_is_met_where_the_least_and_the_most_turns_are_the_same(turns: int) -> None:
    result = held(judging=judge(True), max_turns=turns, min_turns=turns)
    assert (result.status.name, result.goal_achieved, result.turns_used) == ("SUCCESS", True, turns)


def test_a_goal_that_is_judged_only_now_and_then_is_judged_at_the_end_all_the_same() -> None:
    result = held(judging=judge(True), max_turns=4, evaluate_every=10)
    assert (result.status.name, result.goal_achieved, result.turns_used) == ("SUCCESS", True, 4)


# 2


@pytest.mark.parametrize("error", [RateLimited("429 Too Many Requests"), RuntimeError("429 Too Many Requests")])
@pytest.mark.parametrize("max_turns", [1, 8])
def test_a_judge_that_fails_makes_a_test_inconclusive_and_never_its_goal_impossible(
    error: Exception, max_turns: int
) -> None:
    judging = ScriptedModel(lambda request: error, "judge")
    result = held(judging=judging, judge=judging, max_turns=max_turns)
    assert (result.status.name, result.stopped_by, result.blame) == ("INCONCLUSIVE", "max_turns", "judge")
    assert (result.goal_achieved, result.target_passed, result.turns_used) == (False, None, max_turns)
    assert result.evaluation["goal_achievement"].score == "error"
    assert "429 Too Many Requests" in json.dumps(result.model_dump(mode="json"))


# 3

NO_JSON = [ToolCall(id="a", function=FunctionCall(name="send_message_to_target", arguments="{message: Hi}"))]


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        (NO_JSON, "not a JSON object"),
        (call("send_message_to_target", text="Hi"), "wrong arguments for send_message_to_target"),
        (call("open_the_door"), "the tool open_the_door does not exist; the tools are: send_message_to_target"),
        ("I would ask about lamps.", "call exactly one of the tools"),
        (say(""), "the message is empty"),
    ],
)
def test_a_slip_of_the_tester_is_told_to_it_and_ends_nothing(slip: Scripted, told: str) -> None:
    model = player(slip, say("Hi"))
    result = held(model, max_turns=1)
    assert (result.status.name, [turn.message for turn in result.history]) == ("MAX_TURNS", ["Hi"])
    assert told in model.requests[1].messages[-1].text
    assert [(step.refused, told in step.tool_message.text) for step in result.history[0].steps] == [(True, True)]
    assert result.metadata["counts"]["refused_steps"] == 1


def test_an_exception_of_the_testers_model_ends_nothing() -> None:
    result = held(player(RuntimeError("connection reset"), say("Hi")), max_turns=1)
    assert (result.status.name, [turn.message for turn in result.history]) == ("MAX_TURNS", ["Hi"])
    assert result.metadata["counts"] == {"tester_failures": 1}


def test_a_model_that_keeps_failing_ends_the_test_with_all_that_is_known() -> None:
    model = player(say("Hi"), *[RuntimeError("connection reset")] * 3)
    result = held(model, evaluation_metrics=[Counting("mine")])
    assert (result.status.name, result.blame, result.turns_used) == ("ERROR", "tester", 1)
    assert result.evaluation["mine"].passed is True
    assert result.evaluation["goal_achievement"].state == "scored"
    assert (result.metadata["target"], result.metadata["tester"]) == ("echo", "tester")


# 4


def test_a_judge_reads_who_said_what_and_turns_that_failed_keep_their_place() -> None:
    def moody(message: str) -> str:
        if message == "question 2":
            raise ConnectionError("no route to bot")
        return f"reply to {message}"

    asked, mine = judge(False), Counting("mine")
    result = held(judging=asked, target=moody, evaluation_metrics=[mine])
    roles = [(message.role, message.text) for message in mine.given[0].messages]
    assert roles == [
        ("user", "question 1"),
        ("assistant", "reply to question 1"),
        ("user", "question 2"),
        ("user", "question 3"),
        ("assistant", "reply to question 3"),
    ]
    assert [turn.turn_number for turn in result.history] == [1, 2, 3]
    assert [turn.answered for turn in result.history] == [True, False, True]
    last = asked.requests[-1].messages[-1].text
    places = [last.index(f'"{said}"') for _, said in roles]
    assert places == sorted(places)


# 5, 6


def test_every_metric_has_its_own_place_and_none_replaces_the_goal() -> None:
    metrics = [ContextRetentionMetric(ScriptedModel([])), ConversationCoherenceMetric(ScriptedModel([]))]
    result = held(judging=judge(True), evaluation_metrics=metrics)
    assert list(result.evaluation) == ["goal_achievement", metrics[0].name, metrics[1].name]
    assert result.evaluation["goal_achievement"].passed is True


def test_two_metrics_of_one_name_are_refused_before_anything_is_asked() -> None:
    with pytest.raises(UsageError, match="two metrics are called 'mine'"):
        agent(player(), judge(True), evaluation_metrics=[Counting("mine"), Counting("mine")])


def test_findings_are_those_of_the_goal_wherever_its_metric_stands() -> None:
    found = {**verdict(True), "evidence": ["You said: question 1"]}
    result = held(judging=judge(found), evaluation_metrics=[Counting("another")])
    assert result.findings == ["You said: question 1"]


# 7


def test_quality_is_measured_once_and_at_the_end() -> None:
    mine = Counting("mine")
    result = held(player(ANALYSE, say("Hi"), ANALYSE, say("And?")), evaluation_metrics=[mine], max_turns=4)
    assert [len(given.messages) for given in mine.given] == [8]
    assert [list(measured.results) for measured in result.metrics_history] == [["goal_achievement"]] * 4


async def test_quality_metrics_are_asked_side_by_side() -> None:
    meeting = asyncio.Barrier(2)

    class Waiting(Counting):
        async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
            await meeting.wait()
            return self.evaluate_conversation(evaluation_input)

    made = agent(player(), judge(True), evaluation_metrics=[Waiting("a"), Waiting("b")])
    result = await asyncio.wait_for(made.aexecute_test(echo, goal="Return a lamp"), 20)
    assert [result.evaluation[name].passed for name in "ab"] == [True, True]


def test_a_metric_that_raises_spoils_nothing_but_itself() -> None:
    metrics = [Counting("broken", ValueError("no such column")), Counting("fine")]
    result = held(judging=judge(True), evaluation_metrics=metrics)
    assert (result.status.name, result.target_passed) == ("SUCCESS", True)
    assert (result.evaluation["broken"].state, result.evaluation["fine"].passed) == ("error", True)
    assert "no such column" in (result.evaluation["broken"].reasoning or "")
    assert result.all_metrics_passed() is False


# 8, 9


def order_status(number: int) -> dict[str, Any]:
    """Look up what the shop's own records say of an order."""
    return {"number": number, "status": "shipped"}


def test_a_tool_of_ones_own_is_offered_called_and_kept() -> None:
    model = player(call("order_status", number=1042), say("Where is 1042?"))
    result = held(model, tools=[order_status], max_turns=1)
    described = {tool["function"]["name"]: tool["function"]["description"] for tool in model.requests[0].tools}
    assert described["order_status"] == "Look up what the shop's own records say of an order."
    step = result.history[0].steps[0]
    assert (step.tool_name, step.tool_result["output"]) == ("order_status", {"number": 1042, "status": "shipped"})


def seven_words(message: str) -> str:
    return "This answer has seven words in it."


def test_what_an_analysis_found_is_in_the_next_request_and_is_about_the_last_reply() -> None:
    model = player(say("Hi"), ANALYSE, say("And?"))
    held(model, target=seven_words, max_turns=2, enable_analysis_tools=True)
    last = model.requests[2].messages[-1]
    assert isinstance(last, ToolMessage)
    assert "Response length: 7 words" in last.text


# 10


@pytest.mark.parametrize("odd", [57.0, -1.0, 1.01, float("nan"), float("inf"), "sure"])
def test_a_figure_outside_its_range_is_no_verdict(odd: object) -> None:
    judging = judge({**verdict(True), "confidence": odd})
    result = held(judging=judging, judge=judging, max_turns=1)
    assert (result.status.name, result.goal_achieved) == ("INCONCLUSIVE", False)


def test_whether_all_criteria_are_met_is_computed_and_not_believed() -> None:
    criteria = [{"criterion": f"c{i}", "met": i == 0, "evidence": ""} for i in range(2)]
    boast = {"goal_achieved": True, "all_criteria_met": True, "turn_count": 9}
    boasting: dict[str, Any] = {"criteria_evaluations": criteria, "reasoning": "r", "confidence": 1.0, **boast}
    result = held(judging=judge(boasting), goal_metric=SimpleGoalEvaluator(judge(boasting)), max_turns=1)
    details = result.evaluation["goal_achievement"].details
    assert (result.goal_achieved, details["all_criteria_met"], details["turn_count"]) == (False, False, 1)
    assert details["disagreements"] == ["turn_count", "all_criteria_met", "goal_achieved"]


# 11

ALL_METRICS: list[Callable[[ScriptedModel], BaseMultiTurnMetric]] = [
    GoalAchievementJudge,
    SimpleGoalEvaluator,
    ContextRetentionMetric,
    ConversationCoherenceMetric,
    SafetyMetric,
    TurnEfficiencyMetric,
]


@pytest.mark.parametrize("kind", ALL_METRICS)
def test_every_metric_takes_instructions_and_context_and_messages_as_dicts(
    kind: Callable[[ScriptedModel], BaseMultiTurnMetric],
) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    metric = kind(ScriptedModel(lambda request: {"reasoning": "r"}))
    result = metric.evaluate(talk, goal="Be greeted", instructions="Say hi", context={"place": "a shop"})
    assert result.name == metric.name
    assert json.loads(result.model_dump_json())


# 12


@pytest.mark.parametrize("max_turns", [1, 2, 9])
@pytest.mark.parametrize("met", [False, True])
def test_a_target_that_always_fails_is_an_error_of_the_target(max_turns: int, met: bool) -> None:
    def dead(message: str) -> str:
        raise ConnectionError("no route to bot")

    result = held(judging=judge(verdict(met)), target=dead, max_turns=max_turns)
    assert (result.status.name, result.blame, result.goal_achieved) == ("ERROR", "target", False)
    assert (result.stopped_by, result.target_passed) == ("target_down", False)
    assert result.failure is not None
    assert "no route to bot" in result.failure.message


# 13


def test_the_first_message_is_still_in_view_ten_turns_later_and_requests_share_their_beginning() -> None:
    model = player()
    held(model, judge(verdict(False, 0.5)), max_turns=12)
    shown = [[message.model_dump_json() for message in request.messages] for request in model.requests]
    assert len(shown) == 12
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(shown))
    assert "question 1" in shown[-1][2]
    assert len(model.requests[-1].messages[0].text) < 8_000, "the brief is short"


def test_the_judges_requests_share_their_beginning() -> None:
    judging = judge(verdict(False))
    held(judging=judging, max_turns=8)
    asked = ["".join(message.text for message in request.messages) for request in judging.requests]
    pairs = list(pairwise(text.rpartition("\n\nTask:")[0] for text in asked))
    assert len(pairs) == 7
    assert all(later.startswith(earlier) for earlier, later in pairs), "all but the task, which comes last"


def test_results_do_not_keep_prompts() -> None:
    model, judging = player(), judge(False)
    stored = held(model, judging).model_dump_json()
    for request in (*model.requests, *judging.requests):
        system = next(message.text for message in request.messages if isinstance(message, SystemMessage))
        assert json.dumps(system)[1:200] not in stored


# 14


def test_the_rules_know_words_from_parts_of_words_and_hyphens_from_bullets() -> None:
    said = str(AnalyzeTool().execute("I know the well-known answer", "tone and structure").output).casefold()
    assert "negative" not in said
    assert "bullet" not in said


def test_the_rules_take_no_digits_of_dates_and_phones_for_numbers() -> None:
    text = "Call +49 30 1234567 on 2024-03-15 and order the 3 lamps."
    output = ExtractTool().execute(text, "numbers").output
    assert (output["numbers"], output["dates"], output["phones"]) == (["3"], ["2024-03-15"], ["+49 30 1234567"])


def test_the_rules_take_no_little_words_for_what_is_looked_for() -> None:
    output = ExtractTool().execute("The weather is fine. Lamps may be returned.", "the returned lamps").output
    assert output["relevant_content"] == ["Lamps may be returned."]


# 15


async def test_usage_is_counted_by_role_and_everybody_is_named() -> None:
    def respond(body: dict[str, Any]) -> Any:
        if body["model"] == "judge":
            return verdict(False)
        return say(f"question {len(body['messages'])}")

    async with LoopbackServer(respond) as server:
        tester, judging = (OpenAIModel(one, base_url=server.base_url, api_key="x") for one in ("tester", "judge"))
        made = agent(tester, judging)
        result = sound(await made.aexecute_test(echo, goal="Return a lamp"))
        await made.close()
    sent = {
        who: [request.body for request in server.requests if request.body["model"] == who]
        for who in ("tester", "judge")
    }
    for who, bodies in sent.items():
        assert result.usage[who].calls == len(bodies) == 3
        assert result.usage[who].input_tokens == sum(len(json.dumps(body)) // 4 for body in bodies)
        assert result.usage[who].output_tokens > 0
        assert result.metadata[who] == f"{server.base_url}#{who}"
    assert "target" not in result.usage, "a function says nothing of what it used"
    assert result.cost is None, "a price that is unknown is not 0"
    assert result.metadata["target"] == "echo"
    assert all(turn.exchange.seconds is not None for turn in result.history)
    assert result.duration_seconds is not None
    assert result.duration_seconds >= sum(turn.exchange.seconds or 0.0 for turn in result.history)


# 16


async def forever(*_: Any, **__: Any) -> Any:
    await asyncio.Event().wait()


class Hanging(ScriptedModel):
    """A model that answers so many times, and then never again."""

    def __init__(self, replies: Callable[[Request], Scripted], answers: int) -> None:
        super().__init__(replies, "hanging")
        self.answers = answers

    async def complete(self, request: Request) -> ModelReply:
        if len(self.requests) >= self.answers:
            await forever()
        return await super().complete(request)


async def timed(agent: PenelopeAgent, target: Any = echo) -> TestResult:
    """Hold a test that would hang; nothing of it runs on."""
    result = await asyncio.wait_for(agent.aexecute_test(target, goal="Return a lamp"), 20)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return sound(result)


async def test_a_target_that_hangs_is_interrupted_and_what_it_was_asked_is_kept() -> None:
    result = await timed(agent(player(), judge(True), timeout_seconds=NEVER), forever)
    assert (result.status.name, result.stopped_by, result.blame) == ("TIMEOUT", "timeout", "target")
    assert [(turn.message, turn.answered) for turn in result.history] == [("question 1", False)]
    assert (result.goal_achieved, result.target_passed) == (False, False)


async def test_a_target_that_blocks_a_thread_is_interrupted_too() -> None:
    released = threading.Event()

    def blocked(message: str) -> str:
        released.wait()
        return message

    try:
        result = await timed(agent(player(), judge(True), timeout_seconds=NEVER), blocked)
    finally:
        released.set()
    assert (result.status.name, result.blame, result.turns_used) == ("TIMEOUT", "target", 1)


@pytest.mark.parametrize(("answers", "status"), [(0, "TIMEOUT"), (2, "TIMEOUT")])
async def test_a_tester_that_hangs_is_interrupted_and_not_tried_again(answers: int, status: str) -> None:
    model = Hanging(lambda request: say(f"question {len(request.messages)}"), answers)
    result = await timed(agent(model, judge(verdict(False)), timeout_seconds=NEVER))
    assert (result.status.name, result.stopped_by, result.blame) == (status, "timeout", "tester")
    assert (result.turns_used, result.discarded) == (answers, [])


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_judge_that_hangs_is_interrupted_at_the_end_as_well(answers: int) -> None:
    judging = Hanging(lambda request: verdict(False), answers)
    result = await timed(agent(player(), judging, timeout_seconds=NEVER))
    assert (result.status.name, result.stopped_by, result.blame) == ("INCONCLUSIVE", "timeout", "judge")
    assert (result.goal_achieved, result.target_passed, result.turns_used) == (False, None, answers + 1)
    failure = result.evaluation["goal_achievement"].error
    assert failure is not None
    assert (failure.kind, "no verdict within 0.05 s" in failure.message) == ("timeout", True)


async def test_a_metric_that_hangs_is_an_error_of_its_own() -> None:
    hanging = ContextRetentionMetric(Hanging(lambda request: {}, 0))
    result = await timed(agent(player(), judge(True), evaluation_metrics=[hanging], timeout_seconds=NEVER))
    assert (result.status.name, result.evaluation[hanging.name].state) == ("SUCCESS", "error")


async def test_a_tool_that_hangs_is_interrupted() -> None:
    async def ponder() -> None:
        """Ponder."""
        await forever()

    result = await timed(agent(player(call("ponder")), judge(True), tools=[ponder], timeout_seconds=NEVER))
    assert (result.stopped_by, result.blame, result.turns_used) == ("timeout", "tester", 0)
