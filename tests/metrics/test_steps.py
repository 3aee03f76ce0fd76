from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from vivavoce.errors import BudgetExhausted, ModelFault
from vivavoce.metrics.composition import AllOf, Chain
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.custom import function_metric
from vivavoce.metrics.exact.counts import TurnCountMetric
from vivavoce.metrics.exact.topic_drift import TopicDriftMetric
from vivavoce.metrics.judged.aspect_critic import AspectCritic
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.judged.safety import SafetyMetric
from vivavoce.metrics.judged.toxicity import ToxicityMetric
from vivavoce.metrics.judging import JudgedMetric
from vivavoce.metrics.metric import BaseMultiTurnMetric, evaluation_input
from vivavoce.metrics.panel import Panel
from vivavoce.metrics.question import Answer, Ask, Call, Plan, Run, Together, carry_out
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.streaming import StreamingEvaluator
from vivavoce.metrics.transcript import Transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.model import ModelReply
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel

SAID = [{"role": "user", "content": "Cancel order 7"}, {"role": "assistant", "content": "It is cancelled."}]
SAFE: Mapping[str, Any] = {"violations": [], "reasoning": "Harmless.", "confidence": 0.8}


def reading(turns: int = 1, since: int = 0, **known: Any) -> Reading:
    return Reading(evaluation_input(SAID * turns, goal="The order is cancelled", **known), since)


def nobody() -> ScriptedModel:
    """Return a model that no test lets anybody ask."""
    return ScriptedModel([])


def says_one() -> float:
    return 1.0


class Own(BaseMultiTurnMetric):
    """A metric that only measures."""

    def evaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        return MetricResult(score=1.0)


class Cautious(BaseMultiTurnMetric):
    """What somebody puts before a metric, to do something of their own."""

    async def aevaluate_conversation(self, evaluation_input: MultiTurnEvaluationInput) -> MetricResult:
        result = await super().aevaluate_conversation(evaluation_input)
        return result.model_copy(update={"reason": "looked at twice"})


class CautiousSafety(Cautious, SafetyMetric):
    """A judged metric with a way of its own."""


class CautiousCount(Cautious, TurnCountMetric):
    """An exact metric with a way of its own."""


def test_what_is_computed_waits_for_nothing() -> None:
    run = Run(TurnCountMetric().plan_for(reading(2)))
    assert run.step is None
    assert run.result.score == 2


@pytest.mark.parametrize(
    ("metric", "questions"),
    [
        (SafetyMetric(nobody()), 1),
        (SafetyMetric(nobody(), scope="turn"), 3),
        (AspectCritic(nobody(), definition="It is polite.", strictness=3), 3),
        (GoalAchievementJudge(nobody(), scope="turn"), 1),
    ],
)
def test_a_judged_metric_yields_its_questions_and_asks_nobody_itself(
    metric: BaseMultiTurnMetric, questions: int
) -> None:
    step = Run(metric.plan_for(reading(3))).step
    assert isinstance(step, Ask)
    assert isinstance(metric, JudgedMetric)
    assert step.model is metric.judge
    assert len(step.questions) == questions


def test_questions_to_a_judge_who_lists_the_outcomes_hang_on_the_first_answer() -> None:
    judge = GoalAchievementJudge(nobody(), scope="turn")
    first, given = (Run(judge.plan_for(reading(3, outcomes=known))).step for known in ((), ("It is cancelled",)))
    assert isinstance(first, Ask)
    assert isinstance(given, Ask)
    assert (first.leads, len(first.questions)) == (True, 1)
    assert (given.leads, len(given.questions)) == (False, 3)


def test_turns_that_were_asked_about_are_left_out() -> None:
    step = Run(SafetyMetric(nobody(), scope="turn").plan_for(reading(3, since=2))).step
    assert isinstance(step, Ask)
    assert [question.piece.last for question in step.questions] == [3]


@pytest.mark.parametrize(
    "metric",
    [
        Own(MetricConfig(name="own")),
        function_metric(says_one),
        TopicDriftMetric(),
        CautiousSafety(nobody()),
        CautiousCount(),
    ],
)
def test_a_metric_with_a_way_of_its_own_is_called_as_a_whole(metric: BaseMultiTurnMetric) -> None:
    assert isinstance(Run(metric.plan_for(reading())).step, Call)
    assert not metric.stepwise


async def test_a_way_of_its_own_may_lead_to_that_of_the_package() -> None:
    metrics: list[BaseMultiTurnMetric] = [CautiousSafety(ScriptedModel([SAFE])), CautiousCount()]
    results = [await metric.aevaluate(SAID) for metric in metrics]
    assert [(result.score, result.reason) for result in results] == [(1.0, "looked at twice")] * 2


class Busy(Own):
    """A metric that uses plain words for things of its own."""

    def __init__(self) -> None:
        super().__init__(MetricConfig(name="busy", threshold=1.0))
        self.judge, self.trial, self.plan, self.steps = "me", "first", ["ask", "act"], 5
        self.parts, self.questions, self.answers, self.reply, self.shown = [1], 2, 3, "no", True


def test_plain_words_are_free_for_metrics_of_ones_own() -> None:
    assert Busy().evaluate(SAID).score == 1.0
    assert AllOf(Busy(), Chain(Busy())).evaluate(SAID).passed is True
    stream = StreamingEvaluator([Busy()])
    stream.feed(*SAID)
    assert stream.finish()["busy"].score == 1.0


def test_a_metric_made_of_others_carries_out_their_plans() -> None:
    parts = [SafetyMetric(nobody()), ToxicityMetric(nobody())]
    step = Run(AllOf(*parts).plan_for(reading())).step
    assert isinstance(step, Together)
    assert len(step.plans) == 2
    assert isinstance(Run(Chain(*parts).plan_for(reading())).step, Ask)
    votes = Run(Panel(SafetyMetric(nobody()), votes=3).plan_for(reading())).step
    assert isinstance(votes, Together)
    assert len(votes.plans) == 3


def test_whoever_carries_out_a_plan_may_answer_itself() -> None:
    run = Run(SafetyMetric(nobody()).plan_for(reading()))
    assert isinstance(run.step, Ask)
    run.go_on([Answer(question, ModelReply("{}", dict(SAFE))) for question in run.step.questions])
    assert (run.step, run.result.score) == (None, 1.0)


def test_a_question_that_failed_is_an_error_of_the_metric() -> None:
    run = Run(SafetyMetric(nobody()).plan_for(reading()))
    run.fail(ModelFault("down", kind="http"))
    assert (run.result.state, run.result.failure and run.result.failure.kind) == ("error", "http")


def test_a_limit_ends_more_than_a_plan() -> None:
    run = Run(SafetyMetric(nobody()).plan_for(reading()))
    with pytest.raises(BudgetExhausted):
        run.fail(BudgetExhausted("none left"))


def test_a_plan_that_is_not_over_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = Run(SafetyMetric(nobody()).plan_for(reading())).result


async def test_what_a_call_raises_reaches_the_plan() -> None:
    async def fails() -> object:
        raise ValueError("no")

    def plan() -> Plan[str]:
        try:
            yield Call(fails)
        except ValueError as error:
            return f"heard {error}"
        return "nothing"

    assert await carry_out(plan()) == "heard no"


def test_parts_read_the_same_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    add_turn = Transcript.add_turn

    def counted(self: Transcript, messages: Any) -> None:
        written.append(len(messages))
        add_turn(self, messages)

    monkeypatch.setattr(Transcript, "add_turn", counted)
    model = ScriptedModel(lambda request: SAFE)
    result = AllOf(SafetyMetric(model), Panel(ToxicityMetric(model), votes=3)).evaluate(SAID * 2)
    assert (result.passed, written) == (True, [2, 2])


async def test_a_second_answer_takes_the_place_of_the_first_and_both_are_paid_for() -> None:
    (question,) = SafetyMetric(nobody()).questions(reading())
    paid = [ModelReply(text, {}, usage=Usage(calls=1, input_tokens=7)) for text in ("first", "second")]

    class Paid(ScriptedModel):
        async def complete(self, request: Any) -> ModelReply:
            return paid.pop(0)

    answer = await Ask(Paid([]), [question], again=lambda answer: answer.question).answer(question)
    assert (answer.reply.text, answer.usage) == ("second", Usage(calls=2, input_tokens=14))
