from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import BudgetExhausted, ModelFault, UsageError
from vivavoce.metrics.composition import AllOf
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.judged.aspect_critic import AspectCritic
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.panel import Panel
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.streaming import StreamingEvaluator
from vivavoce.metrics.transcript import Transcript
from vivavoce.models.model import ModelReply, Request
from vivavoce.models.openai import OpenAIModel
from vivavoce.records.score import Usage, charge
from vivavoce.testing import LoopbackServer
from vivavoce.testing.scripted import Scripted, ScriptedModel

GOAL = "The user learns that the order is cancelled"
SAFE: Mapping[str, Any] = {"violations": [], "reasoning": "Harmless.", "confidence": 0.8}
HARM: Mapping[str, Any] = {
    "violations": [{"what": "rude", "evidence": ["Answer 1"], "severity": "critical"}],
    "reasoning": "Rude.",
    "confidence": 0.8,
}
DONE: Mapping[str, Any] = {
    "criteria": [{"outcome": "done", "kind": "fact", "evidence": ["Answer 0"], "met": True}],
    "breaches": [],
    "reasoning": "Done.",
    "achievement_level": "fully_achieved",
    "confidence": 0.9,
}


def turn(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"Question {number}"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"t{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        },
        {"role": "tool", "content": "found", "tool_call_id": f"t{number}"},
        {"role": "assistant", "content": f"Answer {number}"},
    ]


def talk(turns: int) -> list[dict[str, Any]]:
    return [{"role": "system", "content": "Be kind."}, *(message for i in range(turns) for message in turn(i))]


def by_task(request: Request) -> Scripted:
    text = request.messages[-1].text
    if "which outcomes were reached" in text:
        told = {"rule": 1, "evidence": ["Answer 0"], "happened": "yes"}
        return {**DONE, "criteria": [], "rules": [told]} if "Rules:" in text else DONE
    focused = text.rpartition("Task:")[2]
    return HARM if " turn 2;" in focused or " turns 1 to 2;" in focused else SAFE


def asked(model: ScriptedModel) -> list[str]:
    return [request.messages[-1].text for request in model.requests]


def test_nothing_is_asked_before_a_turn_is_complete() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")])
    system, user, call, found, answer = talk(1)
    assert [stream.feed(message) for message in (system, user, call, found)] == [None] * 4
    assert model.requests == []
    report = stream.feed(answer)
    assert report is not None
    assert report["safety"].score == 1.0


def test_a_turn_without_an_answer_is_complete_when_the_next_one_begins() -> None:
    stream = StreamingEvaluator([TurnCountMetric()])
    assert stream.feed({"role": "user", "content": "Hello?"}) is None
    report = stream.feed({"role": "user", "content": "Anybody there?"})
    assert report is not None
    assert report["turn_count"].score == 1
    assert stream.finish()["turn_count"].score == 2


@pytest.mark.parametrize("scope", ["turn", "window"])
def test_each_turn_is_paid_for_once(scope: Any) -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([SafetyMetric(model, scope=scope, window=2)])
    for i in range(6):
        stream.feed(*turn(i))
        assert len(model.requests) == i + 1
    stream.finish()
    stream.finish()
    assert len(model.requests) == 6


def test_a_report_is_about_the_new_turn_and_the_results_about_all() -> None:
    stream = StreamingEvaluator([SafetyMetric(ScriptedModel(by_task), scope="turn")])
    scores = [report["safety"].score for i in range(3) if (report := stream.feed(*turn(i)))]
    assert scores == [1.0, 0.0, 1.0]
    assert stream.results["safety"].score == 0.0
    assert len(stream.results["safety"].turns or ()) == 3


def test_turns_fed_at_once_are_judged_at_once() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")])
    report = stream.feed(*talk(3))
    assert report is not None
    assert (report["safety"].score, len(model.requests)) == (0.0, 3)


def test_the_whole_conversation_is_judged_every_so_many_turns_and_at_the_end() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([GoalAchievementJudge(model)], GOAL, every=3)
    counts: list[int] = []
    for i in range(7):
        stream.feed(*turn(i))
        counts.append(len(model.requests))
    assert counts == [0, 0, 1, 1, 1, 2, 2]
    stream.finish()
    assert len(model.requests) == 3
    assert "Answer 6" in asked(model)[-1]


def test_what_has_not_changed_is_not_asked_again_at_the_end() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([GoalAchievementJudge(model)], GOAL)
    stream.feed(*talk(2))
    assert stream.finish()["goal_achievement"].score == "fully_achieved"
    assert len(model.requests) == 1


@pytest.mark.parametrize("scope", ["conversation", "turn"])
def test_an_earlier_prompt_begins_as_every_later_one(scope: Any) -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([SafetyMetric(model, scope=scope)])
    stream.feed(*talk(1))
    for i in range(1, 6):
        stream.feed(*turn(i))
    prompts = [text.rpartition("\nTask:")[0] for text in asked(model)]
    assert len(prompts) == 6
    for earlier, later in pairwise(prompts):
        assert later.startswith(earlier)
        assert len(later) > len(earlier)
    assert len({request.messages[0].text for request in model.requests}) == 1


def test_no_turn_is_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    add_turn = Transcript.add_turn

    def counted(self: Transcript, messages: Any) -> None:
        written.append(len(messages))
        add_turn(self, messages)

    monkeypatch.setattr(Transcript, "add_turn", counted)
    model = ScriptedModel(by_task)
    metrics = [GoalAchievementJudge(model), SafetyMetric(model, scope="turn")]
    stream = StreamingEvaluator([*metrics, SafetyMetric(model, scope="window", window=2, name="recent")], GOAL)
    for i in range(20):
        stream.feed(*turn(i))
    stream.finish()
    assert written == [4] * 20


def chunks(messages: list[dict[str, Any]], cuts: list[int]) -> list[list[dict[str, Any]]]:
    places = [0, *sorted({cut % (len(messages) + 1) for cut in cuts}), len(messages)]
    return [messages[a:b] for a, b in pairwise(places)]


def comparable(result: MetricResult) -> dict[str, Any]:
    return {**result.model_dump(exclude={"details"}), "details": dict(result.details)}


@given(
    st.integers(0, 4),
    st.lists(st.integers(0, 40), max_size=6),
    st.sampled_from(["conversation", "window", "turn"]),
    st.booleans(),
)
def test_streamed_in_any_chunks_the_result_is_that_of_the_whole(
    turns: int, cuts: list[int], scope: Any, late: bool
) -> None:
    messages = talk(turns)
    if late and turns > 1:
        messages.insert(5, {"role": "assistant", "content": "One thing more."})
    metrics: list[JudgedMetric] = [SafetyMetric(ScriptedModel(by_task), scope=scope, window=2)]
    metrics.append(GoalAchievementJudge(ScriptedModel(by_task)))
    stream = StreamingEvaluator([*metrics, TurnCountMetric()], GOAL)
    for chunk in chunks(messages, cuts):
        stream.feed(*chunk)
    report = stream.finish()
    for metric in [*metrics, TurnCountMetric()]:
        assert comparable(report[metric.name]) == comparable(metric.evaluate(messages, GOAL))


def test_what_is_added_to_a_complete_turn_is_judged_with_it_when_the_next_one_begins() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")])
    stream.feed(*turn(0))
    assert stream.feed({"role": "assistant", "content": "By the way"}) is None
    assert len(model.requests) == 1
    stream.feed(*turn(1))
    assert len(model.requests) == 3
    assert asked(model)[1].count("By the way") == 1
    assert asked(model)[2].startswith(asked(model)[1].rpartition("\nTask:")[0])
    assert [one.turn for one in stream.finish()["safety"].turns or ()] == [0, 1]


def test_a_broken_turn_is_an_error_until_the_end_asks_once_more() -> None:
    replies: list[Scripted] = [SAFE, ModelFault("down"), SAFE, SAFE]
    model = ScriptedModel(replies)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")])
    states = [report["safety"].state for i in range(3) if (report := stream.feed(*turn(i)))]
    assert states == ["scored", "error", "scored"]
    assert stream.results["safety"].state == "error"
    assert stream.finish()["safety"].score == 1.0
    assert len(model.requests) == 4


def test_a_turn_that_stays_broken_makes_the_whole_an_error() -> None:
    stream = StreamingEvaluator([SafetyMetric(ScriptedModel(lambda request: ModelFault("down")), scope="turn")])
    stream.feed(*turn(0))
    assert stream.finish()["safety"].state == "error"


def test_a_broken_judgement_of_the_whole_is_asked_once_more_at_the_end() -> None:
    model = ScriptedModel([ModelFault("down"), DONE])
    stream = StreamingEvaluator([GoalAchievementJudge(model)], GOAL)
    report = stream.feed(*talk(1))
    assert report is not None
    assert report["goal_achievement"].state == "error"
    assert stream.finish()["goal_achievement"].score == "fully_achieved"


def test_what_a_budget_cut_off_is_asked_with_the_next_turn_and_missing_until_then() -> None:
    replies: list[Scripted] = [SAFE, BudgetExhausted("none left"), SAFE, SAFE]
    model = ScriptedModel(replies)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")])
    stream.feed(*turn(0))
    with pytest.raises(BudgetExhausted):
        stream.feed(*turn(1))
    assert stream.results["safety"].reasoning == "turn 2 has not been judged yet"
    stream.feed(*turn(2))
    assert len(model.requests) == 4
    assert stream.finish()["safety"].score == 1.0


def test_history_keeps_what_was_new_at_each_turn() -> None:
    model = ScriptedModel(by_task)
    metrics = [SafetyMetric(model, scope="turn"), GoalAchievementJudge(model), TurnCountMetric()]
    stream = StreamingEvaluator(metrics, GOAL, every=2)
    for i in range(4):
        stream.feed(*turn(i))
    assert [moment.turn for moment in stream.history] == [0, 1, 2, 3]
    assert [moment.results["safety"].score for moment in stream.history] == [1.0, 0.0, 1.0, 1.0]
    assert ["goal_achievement" in moment.results for moment in stream.history] == [False, True, False, True]
    assert [moment.results["turn_count"].score for moment in stream.history] == [1, 2, 3, 4]


def test_usage_counts_every_judgement() -> None:
    class Paid(ScriptedModel):
        async def complete(self, request: Request) -> ModelReply:
            reply = await super().complete(request)
            return ModelReply(reply.text, reply.parsed, usage=Usage(calls=1))

    model = Paid(by_task)
    stream = StreamingEvaluator([GoalAchievementJudge(model), SafetyMetric(model, scope="turn")], GOAL)
    for i in range(3):
        stream.feed(*turn(i))
    assert stream.usage == Usage(calls=6)
    assert stream.finish().usage == Usage(calls=4)


def test_usage_counts_the_judgements_that_failed() -> None:
    async def complete(request: Request) -> ModelReply:
        reply = await scripted.complete(request)
        if "turn 1;" in request.messages[-1].text:
            fault = ModelFault("no JSON", kind="format")
            charge(fault, Usage(calls=2))
            raise fault
        return ModelReply(reply.text, reply.parsed, usage=Usage(calls=1))

    model, scripted = ScriptedModel([]), ScriptedModel(by_task)
    model.complete = complete
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn")], GOAL)
    for i in range(3):
        stream.feed(*turn(i))
    assert stream.usage == Usage(calls=4)
    assert stream.results["safety"].usage == Usage(calls=4)


async def test_metrics_are_asked_at_once() -> None:
    class Meeting(ScriptedModel):
        async def complete(self, request: Request) -> ModelReply:
            await meeting.wait()
            return await super().complete(request)

    meeting = asyncio.Barrier(3)
    model = Meeting(by_task)
    stream = StreamingEvaluator([GoalAchievementJudge(model), SafetyMetric(model, scope="turn")], GOAL)
    async with asyncio.timeout(10):
        report = await stream.afeed(*talk(2))
    assert report is not None
    assert [result.state for result in report.values()] == ["scored", "scored"]


async def test_feeding_works_inside_a_running_loop() -> None:
    stream = StreamingEvaluator([TurnCountMetric()])
    stream.feed(*talk(1))
    assert (await stream.afinish())["turn_count"].score == 1


def test_a_skipped_metric_says_so_and_is_judged_once_it_can_be() -> None:
    model = ScriptedModel(lambda request: SAFE)
    stream = StreamingEvaluator([SafetyMetric(model, scope="turn"), "goal_achievement"], model=model)
    stream.feed({"role": "user", "content": "Hello?"}, {"role": "user", "content": "Hello?"})
    assert stream.results["safety"].state == "skipped"
    stream.feed({"role": "assistant", "content": "Good day"})
    report = stream.finish()
    assert report["safety"].score == 1.0
    assert report["goal_achievement"].reasoning == "needs a goal, and none is given"


def test_an_empty_conversation_is_skipped_by_all() -> None:
    report = StreamingEvaluator([SafetyMetric(ScriptedModel([]), scope="turn"), SafetyMetric(name="all")]).finish()
    assert [result.state for result in report.values()] == ["skipped", "skipped"]


def test_compositions_of_whole_judgements_can_be_streamed_and_others_are_refused() -> None:
    stream = StreamingEvaluator([AllOf(SafetyMetric(ScriptedModel(by_task)), TurnCountMetric(threshold=1))])
    stream.feed(*talk(1))
    assert stream.finish()["all_of"].score is True
    turns = SafetyMetric(ScriptedModel([]), scope="turn")
    with pytest.raises(UsageError, match="because safety judges by turn; use safety directly"):
        StreamingEvaluator([AllOf(Panel(turns, votes=2, name="jury"))])


def test_turns_pass_between_two_judgements() -> None:
    with pytest.raises(UsageError, match=r"at least 1 .*; got 0"):
        StreamingEvaluator([TurnCountMetric()], every=0)


def test_malformed_messages_are_refused_and_change_nothing() -> None:
    stream = StreamingEvaluator([TurnCountMetric()])
    with pytest.raises(ValueError, match="role"):
        stream.feed(*turn(0), {"role": "nobody", "content": "x"})
    report = stream.feed(*turn(0))
    assert report is not None
    assert report["turn_count"].score == 1


def test_a_goal_is_judged_by_turns_where_its_outcomes_are_known_before() -> None:
    model = ScriptedModel(by_task)
    stream = StreamingEvaluator([GoalAchievementJudge(model, scope="turn")], GOAL, outcomes=["it is cancelled"])
    stream.feed(*talk(2))
    assert stream.finish()["goal_achievement"].score == "fully_achieved"
    with pytest.raises(UsageError, match="goal_achievement cannot judge by turn while a conversation grows"):
        StreamingEvaluator([GoalAchievementJudge(model, scope="turn")], GOAL)


def test_connections_are_closed_after_each_feed() -> None:
    with LoopbackServer(lambda body: SAFE) as server:
        stream = StreamingEvaluator([SafetyMetric(OpenAIModel("m", base_url=server.base_url))])
        for message in talk(2):
            stream.feed(message)
        assert stream.finish()["safety"].score == 1.0


def test_what_breaks_before_anything_is_asked_is_an_error_of_that_metric() -> None:
    model = ScriptedModel(by_task)
    broken = SafetyMetric(model, scope="turn", name="broken", prompt="About {{ reference }}.")
    stream = StreamingEvaluator([broken, SafetyMetric(model, scope="turn")])
    for i in range(2):
        report = stream.feed(*turn(i))
        assert report is not None
        assert {name: one.state for name, one in report.items()} == {"broken": "error", "safety": "scored"}
    assert stream.finish()["broken"].state == "error"


def test_a_turn_of_which_one_vote_failed_is_asked_about_again_as_a_whole() -> None:
    polite: Mapping[str, Any] = {"reasoning": "So it is.", "evidence": ["Answer"], "verdict": True, "confidence": 1.0}
    model = ScriptedModel([polite, polite, polite, polite, ModelFault("down"), polite, *[polite] * 3])
    stream = StreamingEvaluator([AspectCritic(model, definition="It is polite.", strictness=3, scope="turn")])
    states = [report["aspect_critic"].state for i in range(2) if (report := stream.feed(*turn(i)))]
    assert states == ["scored", "error"]
    result = stream.finish()["aspect_critic"]
    assert (result.score, len(result.details["votes"]), len(model.requests)) == (True, 6, 9)


def test_compositions_write_no_turn_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    add_turn = Transcript.add_turn

    def counted(self: Transcript, messages: Any) -> None:
        written.append(len(messages))
        add_turn(self, messages)

    monkeypatch.setattr(Transcript, "add_turn", counted)
    stream = StreamingEvaluator([AllOf(SafetyMetric(ScriptedModel(by_task)), TurnCountMetric(threshold=1))])
    for i in range(5):
        stream.feed(*turn(i))
    assert written == [4] * 5
