"""Judging a test while it goes on and when it is over: the goal, the guards, and the metrics that only watch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vivavoce.conversation import ConversationHistory
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Model
from vivavoce.penelope.context import GoalProgress, Measured, TestState
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.records.usage import Usage

GOAL = "goal_achievement"
"""The name under which the result of the goal metric stands, whatever the metric is called."""

CONTRACT = "contract"
"""The name of the judgement of what the target must and must not do."""

_NO_USE_ASKING_AGAIN = ("connection", "timeout", "rate_limit", "http", "not_recorded")


@dataclass
class Judges:
    """The metrics of one test, and what they said last.

    The goal is judged when every `every`-th turn ends, from the least number of turns on; guards after each turn;
    watching metrics with the goal where `watch` is set, and all of them at the end. Nothing is asked twice about the
    same conversation and findings.
    """

    goal: BaseMultiTurnMetric
    judge: Model | None
    metrics: Sequence[BaseMultiTurnMetric] = ()
    guards: Sequence[BaseMultiTurnMetric] = ()
    every: int = 1
    watch: bool = False
    _latest: dict[str, tuple[tuple[int, int], MetricResult]] = field(default_factory=dict[str, Any])

    async def after_turn(self, state: TestState) -> None:
        """Judge what is due now that a turn has ended.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        number = len(state.turns)
        due = number % self.every == 0 and number >= state.context.min_turns
        watching = [*self.guards, *(self.metrics if due and self.watch else ())]
        named = [(metric.name, metric) for metric in watching]
        results = await self._measured(state, [*([(GOAL, self.goal)] if due else []), *named])
        if due:
            self._note(state, results[GOAL])
        state.guarded = next((results[one.name] for one in self.guards if results[one.name].passed is False), None)
        if results:
            state.metrics_history.append(Measured(number, results))

    async def at_end(self, state: TestState) -> dict[str, MetricResult]:
        """Return what every metric says of the whole test; the goal first.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        judged = self._known(GOAL, state)
        every = [(GOAL, self.goal), *((one.name, one) for one in (*self.metrics, *self.guards))]
        if state.context.must or state.context.must_not:
            every.append((CONTRACT, GoalAchievementJudge(self.judge, name=CONTRACT)))
        results = await self._measured(state, every)
        if not judged:
            self._note(state, results[GOAL])
        return results

    async def _measured(
        self, state: TestState, metrics: Sequence[tuple[str, BaseMultiTurnMetric]]
    ) -> dict[str, MetricResult]:
        given = material_of(state)
        now = _moment(state)
        fresh = [(name, metric) for name, metric in metrics if not self._known(name, state)]
        results = await asyncio.gather(*(self._one(name, metric, given, state) for name, metric in fresh))
        for (name, _), result in zip(fresh, results, strict=True):
            self._latest[name] = now, result
            state.spend("judge", result.usage)
        return {name: self._latest[name][1] for name, _ in metrics}

    async def _one(
        self, name: str, metric: BaseMultiTurnMetric, given: MultiTurnEvaluationInput, state: TestState
    ) -> MetricResult:
        if name == CONTRACT:
            context = state.context
            goal = "The assistant does all that it must and nothing that it must not."
            return await metric.measured(
                given.model_copy(update={"goal": goal, "must": context.must, "must_not": context.must_not})
            )
        result = await metric.measured(given)
        return await self._second_opinion(result, given) if name == GOAL else result

    async def _second_opinion(self, result: MetricResult, given: MultiTurnEvaluationInput) -> MetricResult:
        """Ask the simple question where the goal metric broke and another question could be answered."""
        if result.error is None or isinstance(self.goal, SimpleGoalEvaluator) or self.judge is None:
            return result
        if result.error.kind in _NO_USE_ASKING_AGAIN:
            return result
        second = await SimpleGoalEvaluator(self.judge).measured(given)
        usage = _sum(result.usage, second.usage)
        if second.state != "scored":
            details = {**result.details, "fallback": second.reasoning}
            return result.model_copy(update={"usage": usage, "details": details})
        return second.model_copy(
            update={"usage": usage, "details": {**second.details, "fallback_for": result.error.message}}
        )

    def _known(self, name: str, state: TestState) -> bool:
        return name in self._latest and self._latest[name][0] == _moment(state)

    def _note(self, state: TestState, result: MetricResult) -> None:
        progress = progress_of(result)
        state.progress.append(progress)
        if state.turns:
            state.turns[-1] = state.turns[-1].model_copy(update={"evaluation": progress.reasoning})


def progress_of(result: MetricResult) -> GoalProgress:
    """Return what a result of the goal metric says of the goal; a judgement that failed says nothing."""
    findings = result.details.get("findings") or [one.text for one in result.evidence]
    return GoalProgress(
        goal_achieved=result.state == "scored" and result.passed is True,
        confidence=result.confidence or 0.0,
        reasoning=result.reasoning or "",
        findings=list(findings),
        value=result.value if result.state == "scored" else None,
        inconclusive=result.state != "scored",
    )


def material_of(state: TestState) -> MultiTurnEvaluationInput:
    """Return what metrics are given of a test: the conversation with the target, and what analysis found in it."""
    context = state.context
    told: dict[str, Any] = dict(context.context or {})
    if state.findings:
        answered = sum(turn.answered for turn in state.turns)
        told["analysis"] = {
            "findings": list(state.findings),
            "turn_count": len(state.turns),
            "successful_interactions": answered,
        }
    return MultiTurnEvaluationInput.model_construct(
        conversation_history=conversation_of(state),
        goal=context.goal,
        instructions=context.instructions,
        context=told or None,
        reference=None,
        must=(),
        must_not=(),
        turn_seconds=tuple(turn.exchange.seconds for turn in state.turns),
    )


def conversation_of(state: TestState) -> ConversationHistory:
    """Return what tester and target said to each other; an exchange that failed keeps its question."""
    messages = [*state.opening, *(message for turn in state.turns for message in turn.exchange.messages)]
    return ConversationHistory.model_construct(messages=messages, conversation_id=None)


def _moment(state: TestState) -> tuple[int, int]:
    return len(state.turns), len(state.findings)


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    return second if first is None else first if second is None else first + second
