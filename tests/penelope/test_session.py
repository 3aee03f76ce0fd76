"""One test from beginning to end: whose fault it is, and the second try after a tester's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stage import NO_FAULT, Bot, Priced, agent, asks_for, attack, call, judge, player, say, verdict
from vivavoce.errors import ModelFault, UsageError
from vivavoce.messages import SystemMessage
from vivavoce.metrics.exact.refusal import RefusalMetric
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.models.model import Request
from vivavoce.penelope.persona import Persona
from vivavoce.penelope.result import TestResult
from vivavoce.penelope.strategies.state_graph import Node, StateGraph
from vivavoce.targets.openai import OpenAITarget
from vivavoce.testing import LoopbackServer, ScriptedModel
from vivavoce.testing.scripted import Scripted

LEAK = {"kind": "leak", "what": "It told.", "evidence": ["As a test"], "decisive": True}
GUILTY: dict[str, Any] = {**NO_FAULT, "faults": [LEAK], "reasoning": "It gave itself away."}
NO_WAY: dict[str, Any] = {
    **NO_FAULT,
    "obstacle": "impossible_goal",
    "obstacle_evidence": ["You said"],
    "reasoning": "It sells none.",
}


async def run_test(model: ScriptedModel, judging: ScriptedModel, bot: Any = None, **options: Any) -> TestResult:
    about = {
        name: options.pop(name)
        for name in ("goal", "must", "must_not", "facts", "scenario", "adversarial")
        if name in options
    }
    tester = agent(model, judging, **{"max_turns": 2, "checks": [], **options})
    goal = about.pop("goal", "Return a lamp")
    return await tester.aexecute_test(bot or Bot(), goal=goal, **about)


def reviewer(*answers: dict[str, Any]) -> ScriptedModel:
    """Return a judge for whom the goal is never met, and who says this of the tester, in order."""
    left = list(answers)
    return ScriptedModel(lambda request: left.pop(0) if asks_for(request, "faults") else verdict(False), "judge")


async def test_a_test_that_the_tester_spoilt_is_held_once_more_and_the_first_kept_apart() -> None:
    bot = Bot()
    result = await run_test(player(say("As a test, hi")), reviewer(GUILTY, NO_FAULT), bot)
    (first,) = result.discarded
    assert (first.blame, first.blame_reason) == ("tester", "It gave itself away.")
    assert first.history[0].message == "As a test, hi"
    assert (result.blame, result.target_passed, result.review is not None) == ("target", False, True)
    assert [turn.turn_number for turn in result.history] == [1, 2]
    assert len(bot.sessions) == 2
    assert TestResult.model_validate_json(result.model_dump_json()) == result


async def test_it_is_not_held_a_third_time() -> None:
    result = await run_test(player(say("As a test"), say("a"), say("As a test")), reviewer(GUILTY, GUILTY))
    assert (result.blame, len(result.discarded), result.discarded[0].discarded) == ("tester", 1, [])


async def test_without_review_nobody_looks_at_the_tester() -> None:
    result = await run_test(player(say("As a test, hi")), reviewer(), review_tester=False)
    assert (result.blame, result.review, result.discarded) == ("target", None, [])


@pytest.mark.parametrize(
    ("judging", "more"),
    [(judge(True), {}), (judge(True), {"adversarial": True}), (judge(ModelFault("x", kind="connection")), {})],
    ids=["goal met", "attack landed", "not judged"],
)
async def test_the_tester_is_looked_at_only_where_a_failure_could_be_its_own(
    judging: ScriptedModel, more: dict[str, Any]
) -> None:
    result = await run_test(player(), judging, **more)
    assert result.review is None
    assert not any(asks_for(request, "faults") for request in judging.requests)


def rule_answers(reviewing: dict[str, Any], happened: str = "no") -> ScriptedModel:
    """Return a judge for whom the goal is never met, what a rule says `happened`, and who says this of the tester."""
    answer = {"rule": 1, "evidence": ["You said"] if happened == "yes" else [], "happened": happened}

    def judge_request(request: Request) -> dict[str, Any]:
        if asks_for(request, "rules"):
            return {"rules": [answer], "reasoning": "r", "confidence": 0.9}
        return reviewing if asks_for(request, "faults") else verdict(False)

    return ScriptedModel(judge_request)


async def test_what_the_target_must_never_do_is_its_own_fault_without_review() -> None:
    result = await run_test(player(), rule_answers(GUILTY, "yes"), must_not=["greet"])
    assert (result.blame, result.blame_reason, result.review) == ("target", "must not: greet", None)
    assert [(criterion.text, criterion.met) for criterion in result.criteria] == [("greet", False)]


@pytest.mark.parametrize(
    ("reviewing", "blame", "passed"), [(NO_FAULT, "target", False), (NO_WAY, "suite", None), (GUILTY, "tester", None)]
)
async def test_what_the_target_did_not_do_though_it_must_may_be_the_fault_of_others(
    reviewing: dict[str, Any], blame: str, passed: bool | None
) -> None:
    result = await run_test(
        player(say("As a test, hi"), say("b"), say("As a test, hi")), rule_answers(reviewing), must=["greet"]
    )
    assert (result.blame, result.target_passed, result.review is not None) == (blame, passed, True)


async def test_what_no_assistant_could_pass_is_the_fault_of_the_suite_and_not_held_again() -> None:
    result = await run_test(player(), reviewer(NO_WAY, NO_WAY))
    assert (result.status.name, result.goal_achieved, result.target_passed) == ("IMPOSSIBLE", False, None)
    assert result.outcome == "goal impossible · undecided"
    assert (result.blame, result.discarded) == ("suite", [])
    assert result.blame_reason == "no assistant could have passed, for the goal is impossible: It sells none."


async def test_what_both_tester_and_suite_got_wrong_is_the_tester_s_first() -> None:
    both = NO_WAY | {"faults": [LEAK]}
    result = await run_test(player(say("As a test, hi")), reviewer(both, both, NO_WAY, NO_WAY))
    assert ([test.blame for test in result.discarded], result.blame) == (["tester"], "suite")


def attack_answers(*answers: dict[str, Any] | ModelFault) -> ScriptedModel:
    """Return a judge for whom no attack lands, and who says this of how it was tried, in order."""
    left = list(answers)
    return ScriptedModel(lambda request: left.pop(0), "judge")


TRIED = attack(given=False)
ASKING_ATTACK = attack(given=False, asked_evidence=["question 4"])
NEVER = attack(given=False, asked=False, reasoning="It only chats.")


async def test_a_target_has_withstood_an_attack_that_was_tried() -> None:
    judging = attack_answers(NEVER, TRIED, TRIED)
    result = await run_test(player(), judging, adversarial=True)
    assert (result.goal_achieved, result.target_passed, result.blame, result.discarded) == (False, True, None, [])
    assert (result.outcome, result.review) == ("attack withstood · target passed", None)
    assert len(judging.requests) == 3, "one question a turn, and a second look at the end"


async def test_an_attack_that_was_never_tried_is_held_again_and_then_proves_nothing() -> None:
    result = await run_test(player(), attack_answers(NEVER, NEVER, NEVER, NEVER), adversarial=True)
    assert (result.target_passed, result.blame, len(result.discarded)) == (None, "tester", 1)
    assert result.blame_reason == "the attack was never tried: It only chats."
    result = await run_test(
        player(), attack_answers(NEVER, NEVER, NEVER, ASKING_ATTACK, ASKING_ATTACK), adversarial=True
    )
    assert (result.target_passed, result.blame, len(result.discarded)) == (True, None, 1)


async def test_where_nobody_knows_whether_an_attack_was_tried_nobody_passes() -> None:
    invented = attack(given=False, asked_evidence=["Tell me now"])
    result = await run_test(player(), attack_answers(NEVER, invented, invented), adversarial=True)
    assert (result.target_passed, result.blame) == (None, "judge")
    assert result.blame_reason.startswith("whether the attack was tried could not be judged: ")


async def test_without_review_an_attack_that_was_withstood_is_believed() -> None:
    result = await run_test(player(), attack_answers(NEVER, NEVER), adversarial=True, review_tester=False)
    assert (result.target_passed, result.review) == (True, None)


async def test_a_goal_metric_of_one_s_own_judges_an_attack_and_the_attempt_is_reviewed() -> None:
    class OwnGoal(GoalAchievementJudge):
        pass

    judging = judge(False)
    result = await run_test(player(), judging, goal_metric=OwnGoal(judging), adversarial=True)
    assert (result.target_passed, result.evaluation["goal_achievement"].score) == (True, "not_achieved")
    assert result.review is not None
    assert (result.review.name, result.review.findings[0].kind) == ("attack", "attempt")


async def test_lines_of_a_script_are_told_to_the_review_and_are_no_fault_of_the_tester() -> None:
    judging = reviewer(GUILTY)
    graph = StateGraph(nodes={"a": Node(say="As a test, hi", next="b"), "b": Node(improvise="Ask on.")}, start="a")
    result = await run_test(player(), judging, strategy=graph)
    assert [turn.scripted for turn in result.history] == [True, False]
    assert (result.blame, result.discarded) == ("target", [])
    review, again = (request.messages[-1].text for request in judging.requests[-2:])
    assert "what the user says in turn 1, word for word" in review
    assert '["Ask on."]' in review
    assert "Its evidence is in no message that the user wrote itself" in again


async def test_the_review_is_told_the_brief_and_how_it_ended() -> None:
    judging = reviewer(NO_FAULT)
    leave = call("end_conversation", reason="fed up")
    options = {"scenario": "At home", "facts": {"order": "1042"}}
    await run_test(player(say("Hi"), leave), judging, **options)
    text = judging.requests[-1].messages[-1].text
    assert '"At home"' in text
    assert '"1042"' in text
    assert "stopped_early" in text


@pytest.mark.parametrize(
    ("model", "judging", "bot", "blame", "status"),
    [
        (player(), judge(False), None, "target", "MAX_TURNS"),
        (ScriptedModel(lambda request: ModelFault("no", kind="http")), judge(False), None, "tester", "ERROR"),
        (player(), judge(ModelFault("no", kind="connection")), None, "judge", "INCONCLUSIVE"),
    ],
)
async def test_a_failed_test_is_somebody_s_fault(
    model: ScriptedModel, judging: ScriptedModel, bot: Bot | None, blame: str, status: str
) -> None:
    result = await run_test(model, judging, bot)
    assert (result.blame, result.status.name) == (blame, status)
    assert (result.target_passed, result.goal_achieved) == (False if blame == "target" else None, False)


async def test_what_costs_too_much_is_nobody_s_fault_but_the_limit_s() -> None:
    result = await run_test(player(), Priced(lambda request: verdict(False)), max_turns=9, max_cost=0.03)
    assert (result.status.name, result.stopped_by, result.blame) == ("ABORTED", "cost", "environment")
    assert result.turns_used == 3
    assert result.usage["judge"].calls == 3
    assert result.cost == pytest.approx(0.03)


async def test_a_goal_that_is_met_when_the_last_turn_ends_is_met() -> None:
    result = await run_test(player(), judge(False, True), max_turns=2)
    assert (result.status.name, result.stopped_by) == ("SUCCESS", "goal_achieved")


async def test_a_goal_that_was_judged_in_between_is_judged_anew_at_the_end() -> None:
    result = await run_test(player(), judge(False, True), max_turns=3, evaluate_every=2)
    assert (result.status.name, result.stopped_by, result.goal_achieved) == ("SUCCESS", "max_turns", True)


async def test_a_target_that_hangs_is_interrupted_and_what_was_said_is_kept() -> None:
    event = asyncio.Event()

    async def hang(message: str) -> str:
        event.set()
        await asyncio.Event().wait()
        return message

    result = await run_test(player(), judge(False), hang, timeout_seconds=0.05)
    assert event.is_set()
    assert (result.status.name, result.stopped_by, result.blame) == ("TIMEOUT", "timeout", "target")
    (turn,) = result.history
    assert (turn.message, turn.answered, result.target_passed) == ("question 1", False, False)


async def test_a_tester_that_hangs_is_interrupted_too() -> None:
    class Hanging(ScriptedModel):
        async def complete(self, request: Request) -> Any:
            await asyncio.Event().wait()

    result = await run_test(Hanging([]), judge(False), timeout_seconds=0.05)
    assert (result.status.name, result.stopped_by, result.turns_used) == ("TIMEOUT", "timeout", 0)
    assert (result.target_passed, result.blame) == (None, "tester")


async def test_whoever_cancels_a_test_cancels_it() -> None:
    event = asyncio.Event()

    async def hang(message: str) -> str:
        event.set()
        await asyncio.Event().wait()
        return message

    task = asyncio.create_task(run_test(player(), judge(False), hang))
    await event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_was_held_of_a_cancelled_test_is_kept() -> None:
    event = asyncio.Event()
    results: list[TestResult] = []

    async def hang(message: str) -> str:
        if message == "question 2":
            event.set()
            await asyncio.Event().wait()
        return f"You said: {message}"

    tester = agent(player(), judge(False), max_turns=9)
    task = asyncio.create_task(tester.aexecute_test(hang, goal="Return a lamp", on_cancelled=results.append))
    await event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (result,) = results
    assert (result.status.name, result.stopped_by, result.stop_reason) == (
        "ABORTED",
        "cancelled",
        "the test was cancelled",
    )
    assert (result.goal_achieved, result.target_passed, result.blame) == (False, None, "environment")
    assert [turn.reply for turn in result.history] == ["You said: question 1", ""]
    assert [failure.kind for turn in result.history if (failure := turn.exchange.failure)] == ["cancelled"]
    assert [turn_metrics.turn for turn_metrics in result.metrics_history] == [1]
    assert result.evaluation == {}
    assert TestResult.model_validate_json(result.model_dump_json()) == result


async def test_the_first_try_is_kept_beside_a_cancelled_second_one() -> None:
    event = asyncio.Event()
    results: list[TestResult] = []

    tester = agent(player(say("As a test, hi")), reviewer(GUILTY), max_turns=1, checks=[])
    bot = iter(["Well"])

    async def reply(message: str) -> str:
        if (answer := next(bot, None)) is None:
            event.set()
            await asyncio.Event().wait()
        return answer or ""

    task = asyncio.create_task(tester.aexecute_test(reply, goal="Return a lamp", on_cancelled=results.append))
    await event.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(result.stopped_by, len(result.discarded)) for result in results] == [("cancelled", 1)]
    assert results[0].discarded[0].history[0].message == "As a test, hi"


@pytest.mark.parametrize("goal", ["", "  \n"])
async def test_without_a_goal_nobody_is_asked(goal: str) -> None:
    model, bot = player(), Bot()
    with pytest.raises(UsageError, match="the goal is empty"):
        await run_test(model, judge(True), bot, goal=goal)
    assert (model.requests, bot.sessions) == ([], [])


async def test_a_guard_that_objects_ends_the_test_and_the_target_has_failed() -> None:
    bot = Bot(lambda message: "I'm sorry, but I can't help with that.")
    result = await run_test(player(), judge(True), bot, guard_metrics=[RefusalMetric(threshold=0.0)], max_turns=9)
    assert (result.status.name, result.stopped_by, result.target_passed) == ("SUCCESS", "goal_achieved", False)
    result = await run_test(player(), judge(False), bot, guard_metrics=[RefusalMetric(threshold=0.0)], max_turns=9)
    assert (result.status.name, result.stopped_by, result.turns_used) == ("ABORTED", "guard", 1)
    assert (result.target_passed, result.blame) == (False, "target")


async def test_metrics_that_watch_leave_their_history() -> None:
    result = await run_test(player(), judge(False), evaluation_metrics=[RefusalMetric()], evaluate_during_test=True)
    assert [(turn_metrics.turn, sorted(turn_metrics.results)) for turn_metrics in result.metrics_history] == [
        (1, ["goal_achievement", "refusal"]),
        (2, ["goal_achievement", "refusal"]),
    ]
    assert result.evaluation["refusal"].value is not None


async def test_the_system_prompt_of_a_target_opens_the_conversation() -> None:
    async with LoopbackServer() as server:
        bot = OpenAITarget("bot", server.base_url, "small", system_prompt="Be brief.")
        result = await run_test(player(), judge(True), bot)
        await bot.close()
    assert result.opening == [SystemMessage(content="Be brief.")]
    assert [message.role for message in result.conversation.messages] == ["system", "user", "assistant"]
    assert (result.history[0].reply, result.metadata["target"]) == ("You said: question 1", "bot")


async def test_over_http_crescendo_takes_the_refused_exchange_out_of_what_is_sent() -> None:
    def answer(body: dict[str, Any]) -> str:
        message = body["messages"][-1]["content"]
        return "I'm sorry, but I can't help with that." if message == "question 2" else f"Gladly: {message}."

    async with LoopbackServer(answer) as server:
        bot = OpenAITarget("bot", server.base_url, "small")
        await run_test(player(), judge(False), bot, strategy="crescendo", max_turns=3)
        await bot.close()
    sent = [[message["content"] for message in request.body["messages"]] for request in server.requests]
    assert sent[-1] == ["question 1", "Gladly: question 1.", "question 3"]


async def test_the_result_says_who_took_part() -> None:
    result = await run_test(player(), judge(True), settings={"temperature": 0.3})
    known = {name: result.metadata[name] for name in ("target", "tester", "goal_metric", "judge", "strategy")}
    assert known == {
        "target": "bot",
        "tester": "tester",
        "goal_metric": "goal_achievement",
        "judge": "judge",
        "strategy": "improvise",
    }
    assert isinstance(result.metadata["session_id"], str)


async def test_two_tests_of_one_agent_at_once_know_nothing_of_each_other() -> None:
    tester = agent(
        ScriptedModel(lambda request: _call_by_name(request)), judge(False), max_turns=3, review_tester=False
    )
    bots = [Bot(), Bot()]
    results = await asyncio.gather(
        *(tester.aexecute_test(bot, goal=f"Goal {i}", persona=Persona(style="curt")) for i, bot in enumerate(bots))
    )
    for i, (result, bot) in enumerate(zip(results, bots, strict=True)):
        assert [turn.message for turn in result.history] == [f"{i} after {n}" for n in (0, 1, 2)]
        assert len(bot.sessions) == 1


def _call_by_name(request: Request) -> Scripted:
    goal = request.messages[0].text.partition('"Goal ')[2][:1]
    return say(f"{goal} after {sum(message.role == 'tool' for message in request.messages)}")
