"""Python of the user inside a test that misbehaves, limits that are reached, and tests that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from exams import agent, always, render, sound
from stage import call, judge, player, say, verdict
from vivavoce.errors import BudgetExhausted, StoreError
from vivavoce.metrics import ContextRetentionMetric, GoalAchievementJudge
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import ModelReply, Request
from vivavoce.penelope import PenelopeAgent, Stop, StoppingCondition, TestResult, TestState, TestStatus
from vivavoce.penelope.strategies.strategy import Move
from vivavoce.penelope.tools.tool import OUTPUT_LIMIT, Tool, ToolResult
from vivavoce.penelope.turn import Turn
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel


def fine(message: str) -> str:
    return f"A fine answer to {message}."


def held(model: Any = None, judging: ScriptedModel | None = None, on_turn: Any = None, **options: Any) -> TestResult:
    made = agent(model or player(), judging or judge(False), **options)
    return made.execute_test(fine, goal="Return a lamp", on_turn=on_turn)


def broken(result: TestResult, said: str, turns: int) -> None:
    """Assert that a test was broken by what leads it, and that all that was known is kept."""
    assert (result.status.name, result.stopped_by, result.blame) == ("ERROR", "broken", "tester")
    assert (result.goal_achieved, result.target_passed, result.turns_used) == (False, None, turns)
    assert said in result.stop_reason
    assert result.failure is not None
    sound(result)


# strategies, checks, conditions, listeners


class Leading:
    name, adversarial = "mine", False

    def __init__(self, made: Any) -> None:
        self.made = made

    def move(self, state: TestState) -> Any:
        if state.turns and isinstance(self.made, Exception):
            raise self.made
        return self.made if state.turns else Move(say="Hi")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (ValueError("no idea"), "the strategy mine raised ValueError: no idea"),
        (BudgetExhausted("enough"), "the strategy mine raised BudgetExhausted: enough"),
        (None, "the strategy mine returned a NoneType, not a Move"),
        ("Hi", "the strategy mine returned a str, not a Move"),
        (Move(say=5), "string"),  # pyright: ignore[reportArgumentType]
        (Move(guidance=5), "str"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_strategy_that_breaks_breaks_its_test_and_what_was_said_is_kept(made: Any, said: str) -> None:
    broken(held(strategy=Leading(made)), said, 1)


class Objecting:
    name, patience = "mine", None

    def __init__(self, objection: Any) -> None:
        self.objected = objection

    def objection(self, message: str, state: TestState) -> Any:
        if isinstance(self.objected, Exception):
            raise self.objected
        return self.objected


def test_a_check_that_raises_breaks_its_test() -> None:
    broken(held(checks=[Objecting(ValueError("odd"))]), "the check mine raised ValueError: odd", 0)


@pytest.mark.parametrize("objection", ["say it otherwise", True, 5])
def test_a_check_that_objects_for_ever_uses_up_the_steps(objection: Any) -> None:
    result = sound(held(checks=[Objecting(objection)]))
    assert (result.status.name, result.stopped_by, result.blame) == ("ERROR", "step_budget", "tester")
    assert result.metadata["counts"]["mine"] == 10


class Stopping(StoppingCondition):
    name = "mine"

    def __init__(self, stop: Any) -> None:
        self.stop = stop

    def check(self, state: TestState) -> Any:
        if isinstance(self.stop, Exception):
            raise self.stop
        return self.stop


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (ValueError("odd"), "the condition mine raised ValueError: odd"),
        (True, "the condition mine returned a bool, not a Stop"),
        ("enough", "the condition mine returned a str, not a Stop"),
    ],
)
def test_a_condition_that_breaks_breaks_its_test(stop: Any, said: str) -> None:
    broken(held(conditions=[Stopping(stop)]), said, 1)


def test_a_condition_that_calls_a_test_a_success_makes_none_of_it() -> None:
    result = sound(held(conditions=[Stopping(Stop("mine", TestStatus.SUCCESS, "I say so"))]))
    assert (result.status.name, result.stopped_by, result.goal_achieved) == ("FAILURE", "mine", False)


def test_a_condition_without_a_name_is_called_as_its_class() -> None:
    class NothingSaid(StoppingCondition):
        def should_stop(self, state: TestState) -> bool:
            return True

    result = sound(held(conditions=[NothingSaid()]))
    assert (result.status.name, result.stopped_by) == ("FAILURE", "nothing_said")


async def raising(turn: Turn) -> None:
    raise ValueError("the pipe is closed")


def raising_at_once(turn: Turn) -> None:
    raise ValueError("the pipe is closed")


@pytest.mark.parametrize("listener", [raising, raising_at_once])
def test_a_listener_that_breaks_breaks_its_test(listener: Any) -> None:
    broken(held(on_turn=listener), "ValueError: the pipe is closed", 1)


def test_a_store_that_cannot_be_written_is_no_matter_of_the_test() -> None:
    async def writing(turn: Turn) -> None:
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        held(on_turn=writing)


# tools


class Nameless:
    def __repr__(self) -> str:
        raise ValueError("no words for it")


class Own(Tool):
    name, description = "mine", "Does something."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}

    def __init__(self, made: Any = None, where: str = "", parameters: Any = None) -> None:
        self.made, self.where = made, where
        self.parameters = parameters or type(self).parameters

    def begin(self, state: TestState) -> Tool:
        if self.where == "begin":
            raise ValueError("no beginning")
        return self

    def findings(self, result: ToolResult) -> list[str]:
        if self.where == "findings":
            raise ValueError("nothing found")
        return super().findings(result) if self.where != "numbers" else [5]  # pyright: ignore[reportReturnType]

    def execute(self, **arguments: Any) -> ToolResult:
        if isinstance(self.made, BaseException):
            raise self.made
        return self.made


CIRCLE: dict[str, Any] = {}
CIRCLE["again"] = CIRCLE
DONE = ToolResult(success=True, output="done")


@pytest.mark.parametrize("returned", [None, "done", {"found": [1]}])
def test_what_a_tool_returns_is_its_output(returned: Any) -> None:
    result = sound(held(player(call("mine"), say("Hi")), tools=[Own(returned)], max_turns=1))
    (step,) = result.history[0].steps
    assert step.tool_result["success"] is True
    assert step.tool_result.get("output") == returned


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (Own(ValueError("odd")), "ValueError: odd"),
        (Own(SystemExit(1)), "sys.exit(1)"),
        (Own(asyncio.CancelledError()), "cancelled its own task"),
        (Own(ToolResult(success=True, output={(1, 2): 3})), "keys must be str"),
        (Own(ToolResult(success=True, output=CIRCLE)), "Circular"),
        (Own(ToolResult(success=True, output=Nameless())), "no words for it"),
        (Own(DONE, "findings"), "nothing found"),
        (Own(DONE, parameters={"type": "nonsense"}), "schema is not valid"),
        (Own(DONE, parameters={"$ref": "http://127.0.0.1:9/x"}), "the JSON schema refers to"),
    ],
)
def test_a_tool_that_breaks_is_told_to_the_tester_which_goes_on(tool: Own, said: str) -> None:
    result = sound(held(player(call("mine"), say("Hi")), tools=[tool], max_turns=1))
    assert (result.status.name, result.turns_used) == ("MAX_TURNS", 1)
    (step,) = result.history[0].steps
    assert step.tool_result["success"] is False
    assert said in step.tool_result["error"]


@pytest.mark.parametrize("output", [{"usage": "10 %"}, {"usage": {"calls": 900, "cost": 1e9}}, "x" * OUTPUT_LIMIT])
def test_what_a_tool_says_is_its_own_affair_and_costs_nothing(output: Any) -> None:
    result = sound(held(player(call("mine")), tools=[Own(ToolResult(success=True, output=output))], max_turns=1))
    assert result.history[0].steps[0].tool_result["output"] == output
    assert result.usage == {}
    assert all(len(finding) < 400 for finding in result.findings)


def test_findings_are_texts() -> None:
    assert sound(held(player(call("mine")), tools=[Own(DONE, "numbers")], max_turns=1)).findings == ["5"]


def test_a_tool_that_cannot_begin_breaks_its_test_before_it_begins() -> None:
    broken(held(tools=[Own(DONE, "begin")]), "no beginning", 0)


# metrics


class Saying(BaseMultiTurnMetric):
    def __init__(self, made: Any, stuck: bool = False) -> None:
        super().__init__(MetricConfig(name="mine", class_name="Saying", score_type="binary"))
        self.made, self.stuck = made, stuck

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        if isinstance(self.made, BaseException):
            raise self.made
        return self.made

    async def close(self) -> None:
        if self.stuck:
            raise RuntimeError("the door is stuck")


def yes(**details: Any) -> MetricResult:
    return MetricResult(score=True, passed=True, details=details)


@pytest.mark.parametrize("made", [ValueError("odd"), SystemExit(1), None, "yes", {"score": 1}])
def test_a_metric_of_the_goal_that_breaks_makes_a_test_inconclusive(made: Any) -> None:
    result = sound(held(goal_metric=Saying(made), judge=judge("garbage")))
    assert (result.status.name, result.blame, result.goal_achieved) == ("INCONCLUSIVE", "judge", False)


@pytest.mark.parametrize("findings", [3, "abc", [1, 2], None, {"a": 1}])
def test_a_metric_of_the_goal_may_say_anything_in_its_details(findings: Any) -> None:
    result = sound(held(goal_metric=Saying(yes(findings=findings))))
    assert (result.status.name, result.goal_achieved) == ("SUCCESS", True)
    assert result.findings == (["1", "2"] if findings == [1, 2] else [])


def test_details_that_are_no_json_are_spelled() -> None:
    result = render(held(evaluation_metrics=[Saying(yes(at=Nameless, kinds={1}))]))
    again = sound(TestResult.model_validate_json(result.model_dump_json()))
    assert "Nameless" in again.evaluation["mine"].details["at"]


def test_a_metric_that_cannot_be_closed_loses_no_result() -> None:
    assert sound(held(judging=judge(True), evaluation_metrics=[Saying(yes(), stuck=True)])).goal_achieved is True


@pytest.mark.parametrize("made", [ValueError("odd"), None])
def test_a_guard_that_breaks_stops_nothing_and_is_no_pass(made: Any) -> None:
    result = sound(held(guard_metrics=[Saying(made)]))
    assert (result.status.name, result.turns_used, result.evaluation["mine"].state) == ("MAX_TURNS", 3, "error")
    assert result.all_metrics_passed() is False


def test_a_guard_that_objects_where_the_goal_is_met_fails_the_target_and_says_why() -> None:
    no = MetricResult(score=False, passed=False, reasoning="It swore.", name="mine")
    result = sound(held(judging=judge(True), guard_metrics=[Saying(no)]))
    assert (result.goal_achieved, result.target_passed, result.blame) == (True, False, "target")
    assert "It swore." in result.blame_reason


# limits


class Priced(ScriptedModel):
    """A model whose every answer costs a dollar."""

    async def complete(self, request: Request) -> ModelReply:
        reply = await super().complete(request)
        return ModelReply(reply.text, reply.parsed, reply.tool_calls, Usage(calls=1, cost=1.0))


def test_a_test_whose_money_is_spent_is_aborted_and_nobody_is_to_blame_for_it() -> None:
    model = Priced(lambda request: say(f"question {len(request.messages)}"))
    result = sound(held(model, max_cost=2.0, max_turns=9))
    assert (result.status.name, result.stopped_by, result.blame) == ("ABORTED", "cost", "environment")
    assert (result.turns_used, result.usage["tester"].cost, result.target_passed) == (2, 2.0, None)


def test_a_test_that_is_held_twice_spends_no_more_than_one() -> None:
    model = Priced(always(call("fly")))
    result = sound(held(model, max_cost=7.0, max_steps=5, review_tester=True))
    assert [one.stopped_by for one in (*result.discarded, result)] == ["step_budget", "cost"]
    assert len(model.requests) == 7


class Spent(ScriptedModel):
    """A model whose budget is used up after some answers."""

    def __init__(self, answers: int, reply: Any) -> None:
        super().__init__(always(reply), "spent")
        self.answers = answers

    async def complete(self, request: Request) -> ModelReply:
        if len(self.requests) >= self.answers:
            raise BudgetExhausted("the limit of 10 calls is reached")
        return await super().complete(request)


class Hanging(ScriptedModel):
    """A model that never answers."""

    def __init__(self) -> None:
        super().__init__([], "hanging")

    async def complete(self, request: Request) -> ModelReply:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError


def hanging_guard() -> ContextRetentionMetric:
    return ContextRetentionMetric(Hanging())


@pytest.mark.parametrize(
    "made",
    [
        lambda: agent(Spent(1, say("Hi")), judge(False)),
        lambda: agent(player(), Spent(1, verdict(False))),
        lambda: agent(player(), Spent(0, verdict(False)), guard_metrics=[hanging_guard()]),
    ],
)
async def test_a_budget_that_is_used_up_ends_more_than_the_test_and_nothing_runs_on(
    made: Callable[[], PenelopeAgent],
) -> None:
    with pytest.raises(BudgetExhausted, match="10 calls"):
        await asyncio.wait_for(made().aexecute_test(fine, goal="Return a lamp"), 20)
    assert asyncio.all_tasks() == {asyncio.current_task()}


# cancelled and interrupted


async def hanging_target(message: str) -> str:
    await asyncio.Event().wait()
    return message


@pytest.mark.parametrize(
    ("made", "target"),
    [
        (lambda: agent(player(), judge(False)), hanging_target),
        (lambda: agent(Hanging(), judge(False)), fine),
        (lambda: agent(player(), Hanging()), fine),
        (lambda: agent(player(), judge(False), guard_metrics=[hanging_guard()]), fine),
        (lambda: agent(player(), judge(False), evaluation_metrics=[hanging_guard()], max_turns=1), fine),
    ],
)
async def test_a_test_that_is_cancelled_is_over_at_once_and_nothing_runs_on(
    made: Callable[[], PenelopeAgent], target: Any
) -> None:
    task = asyncio.create_task(made().aexecute_test(target, goal="Return a lamp"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_ctrl_c_is_no_failure_of_anybody() -> None:
    with pytest.raises(KeyboardInterrupt):
        held(ScriptedModel(always(KeyboardInterrupt())))


async def test_the_sync_way_works_inside_a_running_loop() -> None:
    result = sound(held(judging=judge(True)))
    assert (result.status.name, result.turns_used) == ("SUCCESS", 1)


async def test_one_agent_holds_many_tests_at_once_and_mixes_none_up() -> None:
    def answering(number: int) -> Callable[[str], str]:
        return lambda message: f"answer of {number} to {message}"

    agent = PenelopeAgent(
        ScriptedModel(lambda request: say(f"question {len(request.messages)}")),
        goal_metric=GoalAchievementJudge(judge(False)),
        max_turns=4,
        review_tester=False,
    )
    tests = (agent.aexecute_test(answering(i), goal=f"goal {i}") for i in range(20))
    for number, result in enumerate(await asyncio.gather(*tests)):
        sound(result)
        assert [turn.reply.split()[2] for turn in result.history] == [str(number)] * 4
        assert result.context.goal == f"goal {number}"
