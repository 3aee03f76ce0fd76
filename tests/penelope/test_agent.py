"""The agent: what it may be given, what a test may be told, and the sync edge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stage import Bot, BotSession, agent, judge, player, say, simple
from vivavoce.errors import UsageError
from vivavoce.messages import FilePart, HumanMessage
from vivavoce.metrics import BaseMultiTurnMetric, CoherenceMetric, GoalAchievementJudge, MetricConfig, MetricResult
from vivavoce.metrics.evaluation import quality_metrics, security_metrics
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.penelope import EndpointTarget, PenelopeAgent
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.penelope.tools.analyze import AnalyzeTool
from vivavoce.penelope.tools.tool import tool
from vivavoce.testing import LoopbackServer, ScriptedModel


@tool
def look_up(order: str) -> str:
    """Look an order up."""
    return order


def test_a_test_is_held_where_no_loop_runs() -> None:
    result = agent(player(), judge(False, True)).execute_test(Bot(), "Ask about lamps", "Learn about lamps")
    assert (result.goal_achieved, result.turns_used, result.context.instructions) == (True, 2, "Ask about lamps")


async def test_and_where_one_runs() -> None:
    await asyncio.sleep(0)
    assert agent(player(), judge(True)).execute_test(Bot(), goal="Learn").goal_achieved


def test_a_function_is_a_target() -> None:
    result = agent(player(), judge(True)).execute_test(str.upper, goal="Learn")
    assert (result.history[0].reply, result.metadata["target"]) == ("QUESTION 1", "upper")


def test_an_endpoint_is_a_target() -> None:
    with LoopbackServer(lambda body: {"reply": f"{body['message']}!"}) as server:
        result = agent(player(), judge(True)).execute_test(EndpointTarget(f"{server.url}/chat"), goal="Learn")
    assert result.history[0].reply == "question 1!"


def test_the_goal_is_judged_by_the_tester_s_model_unless_told_otherwise() -> None:
    model, other = player(), judge(True)
    agent = PenelopeAgent(model)
    assert isinstance(agent.goal_metric, GoalAchievementJudge)
    assert agent.goal_metric.model is model
    assert PenelopeAgent(model, judge=other).goal_metric.model is other


def test_the_simple_goal_can_be_chosen() -> None:
    model = ScriptedModel([simple(False), simple(True, evidence="You said")])
    agent = PenelopeAgent(player(), goal_metric="simple", judge=model)
    assert isinstance(agent.goal_metric, SimpleGoalEvaluator)
    result = agent.execute_test(Bot(), goal="Learn")
    assert (result.goal_achieved, result.turns_used) == (True, 2)
    assert result.evaluation["goal_achievement"].details["turn_count"] == 2
    assert "[MET] c0: You said" in result.findings


class Rated(BaseMultiTurnMetric):
    """Gives a number, and leaves it to its configuration what that is worth and whether it passes."""

    def __init__(self, name: str, score: float) -> None:
        super().__init__(MetricConfig(name=name, threshold=0.5))
        self.score = score

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        return MetricResult(score=self.score)


@pytest.mark.parametrize(("score", "achieved"), [(0.9, True), (0.4, False)])
def test_a_goal_metric_of_your_own_is_achieved_from_its_threshold_on(score: float, achieved: bool) -> None:
    agent = PenelopeAgent(player(), goal_metric=Rated("mine", score), max_turns=1)
    result = agent.execute_test(Bot(), goal="Learn")
    assert (result.goal_achieved, result.target_passed) == (achieved, achieved)
    assert result.evaluation["goal_achievement"].value == score


@pytest.mark.parametrize(("score", "passed"), [(0.0, False), (0.9, True)])
def test_a_guard_of_your_own_passes_from_its_threshold_on(score: float, passed: bool) -> None:
    result = agent(player(), judge(True), guard_metrics=[Rated("safe", score)]).execute_test(Bot(), goal="Learn")
    assert (result.evaluation["safe"].passed, result.target_passed) == (passed, passed)
    assert result.all_metrics_passed() is passed


def test_the_quality_is_that_of_a_metric_of_your_own() -> None:
    tester = agent(player(), judge(True), evaluation_metrics=[Rated("worst", 0.0), Rated("fair", 0.5)])
    assert tester.execute_test(Bot(), goal="Learn").get_quality_score() == 0.25


def test_metrics_and_guards_are_taken_by_name_as_evaluate_takes_them() -> None:
    long: Any = {"metric": "turn_count", "threshold": 0, "name": "long"}
    some: Any = {"metric": "turn_count", "threshold": 1, "name": "some"}
    model = judge(True)
    tester = PenelopeAgent(player(), judge=model, evaluation_metrics=["coherence", long], guard_metrics=[some])
    assert [metric.name for metric in tester.evaluation_metrics] == ["coherence", "long"]
    assert tester.evaluation_metrics[0].model is model, "the judge of the test judges for it"
    tester = agent(player(), judge(True), evaluation_metrics=["turn_count", long], guard_metrics=[some])
    result = tester.execute_test(Bot(), goal="Learn")
    passeds_by_name = {name: result.evaluation[name].passed for name in ("turn_count", "long", "some")}
    assert passeds_by_name == {"turn_count": None, "long": False, "some": True}


def test_the_goal_metric_is_taken_by_name() -> None:
    goal_metric: Any = {"metric": "goal_achievement", "name": "reached"}
    agent = PenelopeAgent(player(), goal_metric=goal_metric, judge=judge(True))
    assert isinstance(agent.goal_metric, GoalAchievementJudge)
    assert agent.execute_test(Bot(), goal="Learn").goal_achieved


def test_older_names_of_options_mean_the_same() -> None:
    tester = agent(player(), judge(False), max_iterations=1, custom_tools=[look_up], review_tester=False)
    assert tester.max_turns == 1
    assert "look_up" in [tool.name for tool in tester.setup.tools]
    result = tester.execute_test(Bot(), goal="Learn", test_instructions="Ask")
    assert (result.turns_used, result.context.instructions) == (1, "Ask")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_turns": 1, "max_iterations": 2}, "max_turns and max_iterations are the same option"),
        ({"tools": [], "custom_tools": []}, "tools and custom_tools are the same option"),
        ({"max_turns": 0}, "max_turns must be at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be at least 1, got 0"),
        ({"evaluate_every": 0}, "evaluate_every must be at least 1, got 0"),
        ({"max_turn": 3}, "max_turn"),
        ({"strategy": "crescend"}, "did you mean 'crescendo'"),
        ({"tools": [AnalyzeTool()] * 2}, "two tools are called 'analyze_response'"),
        ({"tools": [7]}, "a tool is a Tool or a function with a docstring, got 7"),
        ({"evaluation_metrics": ["coherense"]}, "no metric 'coherense'; did you mean 'coherence'"),
        ({"evaluation_metrics": [CoherenceMetric]}, "the class .*CoherenceMetric; create an instance of it"),
        ({"guard_metrics": [{"metric": "refusal", "treshold": 1}]}, "no option 'treshold'"),
        ({"goal_metric": "simpel"}, "no metric 'simpel'"),
        (
            {"evaluation_metrics": [GoalAchievementJudge()], "goal_metric": "simple"},
            "two metrics judge the goal: simple_goal as goal_metric",
        ),
        ({"evaluation_metrics": [CoherenceMetric()], "guard_metrics": [CoherenceMetric()]}, "two metrics are called"),
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        PenelopeAgent(player(), **options)


@pytest.mark.parametrize(
    ("about", "complaint"),
    [
        ({"persona": "impatiend"}, "did you mean 'impatient'"),
        ({"persona": {"stile": "curt"}}, "no field 'stile'"),
        ({"max_turns": 0}, "max_turns"),
        ({"instructions": "a", "test_instructions": "b"}, "are two names of one option, but their values differ"),
        ({"sceario": "x"}, "sceario"),
        ({"files": ["no.png"]}, r"the file no\.png does not exist"),
    ],
)
def test_what_a_test_cannot_be_told_is_refused(about: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        agent(player(), judge(True)).execute_test(Bot(), goal="x", **about)


def test_two_files_of_one_name_cannot_be_told_apart() -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        (Path(folder) / "x.txt").write_text("x")
    with pytest.raises(UsageError, match=r"two files are called x\.txt"):
        agent(player(), judge(True)).execute_test(Bot(), goal="x", files=["a/x.txt", "b/x.txt"])


def test_an_instruction_given_under_both_names_is_one() -> None:
    assert agent(player(), judge(True)).context("a", "g", test_instructions="a").instructions == "a"


def test_what_is_told_singly_is_a_list_of_one() -> None:
    context = agent(player(), judge(True)).context(
        goal="g", restrictions="No names", openings="Hi", persona="impatient"
    )
    assert (context.restrictions, context.openings) == (("No names",), ("Hi",))
    assert context.persona is not None
    assert context.persona.name == "impatient"


def test_an_adversarial_strategy_makes_an_adversarial_test_unless_it_is_said_not_to() -> None:
    tester = agent(player(), judge(True), strategy="crescendo")
    assert tester.context(goal="g").adversarial
    assert not tester.context(goal="g", adversarial=False).adversarial


def test_a_file_goes_to_the_target_with_the_message() -> None:
    Path("photo.txt").write_text("broken")
    seen: list[HumanMessage] = []

    class Looking(Bot):
        async def open(self, opening: Any) -> BotSession:
            session = await super().open(opening)
            send = session.send

            async def look(messages: Any) -> Any:
                seen.append(messages[-1])
                return await send(messages)

            session.send = look
            return session

    model = player(say("Look.", files=["photo.txt"]))
    result = agent(model, judge(True)).execute_test(Looking(), goal="x", files=["photo.txt"])
    assert result.history[0].message == "Look."
    (part,) = [part for part in seen[0].content or () if isinstance(part, FilePart)]
    assert part.file.filename == "photo.txt"
    assert '"photo.txt"' in model.requests[0].messages[0].text


def test_a_chatty_agent_prints_each_turn(capsys: pytest.CaptureFixture[str]) -> None:
    agent(player(), judge(True), verbose=True).execute_test(Bot(lambda message: "\x1b[31mHi"), goal="x")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "1. user: question 1\n   assistant: Hi\n"


def test_without_analysis_there_is_only_talking_and_leaving() -> None:
    tester = agent(player(), judge(True), enable_analysis_tools=False)
    assert [tool.name for tool in tester.setup.tools] == ["end_conversation"]


def test_min_turns_of_the_agent_hold_unless_the_test_has_its_own() -> None:
    tester = agent(player(), judge(True), min_turns=3)
    assert tester.execute_test(Bot(), goal="x").turns_used == 3
    assert tester.execute_test(Bot(), goal="x", min_turns=1).turns_used == 1


def test_models_are_closed_after_a_test_of_its_own() -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def close(self) -> None:
            closed.append(self.name)

    judging = Closing(lambda request: simple(True), "judge")
    PenelopeAgent(Closing(lambda request: say("Hi"), "tester"), judge=judging, goal_metric="simple").execute_test(
        Bot(), goal="x"
    )
    assert {*closed} == {"tester", "judge"}


def test_one_rule_given_as_a_text_is_one_rule() -> None:
    about = PenelopeAgent(player()).context(goal="x", must="greet", must_not="swear")
    assert (about.must, about.must_not) == (("greet",), ("swear",))


def test_the_judge_is_the_one_that_is_given_else_that_of_the_environment_else_the_tester(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(**options: Any) -> str | None:
        model = PenelopeAgent(ScriptedModel([], "tester"), **options).goal_metric.model
        return None if model is None else model.name

    assert judge() == "tester"
    monkeypatch.setenv("VIVAVOCE_JUDGE", "http://localhost:1/v1#m")
    assert judge() == "http://localhost:1/v1#m"
    assert judge(judge=ScriptedModel([], "mine")) == "mine"


@pytest.mark.parametrize("preset", [quality_metrics, security_metrics])
async def test_a_preset_fits_and_its_goal_metric_judges_the_goal(preset: Callable[..., list[Any]]) -> None:
    tester, judging = player(), judge(True)
    penelope_agent = PenelopeAgent(tester, evaluation_metrics=preset(judging))
    assert (penelope_agent.goal_metric.name, penelope_agent.goal_metric.model) == ("goal_achievement", judging)
    assert [metric.name for metric in penelope_agent.evaluation_metrics] == [metric.name for metric in preset(judging)][
        1:
    ]
    result = await penelope_agent.aexecute_test(Bot(), goal="Return a lamp")
    assert list(result.evaluation) == [metric.name for metric in preset(judging)]
    assert result.goal_achieved
    own = GoalAchievementJudge(judging)
    assert agent(tester, judging, goal_metric=own, evaluation_metrics=preset(judging)).goal_metric is own


def test_the_goal_metric_of_a_preset_without_a_model_asks_the_judge_of_the_test() -> None:
    preset, judging = quality_metrics(), judge(True)
    agent = PenelopeAgent(player(), judge=judging, evaluation_metrics=preset)
    assert (agent.goal_metric.model, preset[0].model) == (judging, None)


@pytest.mark.parametrize(("goal_metric", "name"), [("simple", "simple_goal"), (None, "goal_achievement")])
def test_another_goal_metric_than_the_one_of_a_preset_is_refused(goal_metric: Any, name: str) -> None:
    judging = judge(True)
    goal_metric = goal_metric or GoalAchievementJudge(judging)
    preset = quality_metrics(ScriptedModel([], "another"))
    rule = f"two metrics judge the goal: {name} as goal_metric, and goal_achievement in evaluation_metrics, which a"
    with pytest.raises(UsageError, match=rule):
        PenelopeAgent(player(), judge=judging, goal_metric=goal_metric, evaluation_metrics=preset)
    agent = PenelopeAgent(player(), judge=judging, goal_metric=goal_metric, evaluation_metrics=preset[1:])
    assert [metric.name for metric in agent.evaluation_metrics] == [metric.name for metric in preset[1:]]
