"""One test from beginning to end: lead the conversation, judge it, say what it comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vivavoce.errors import Fault
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.types import MultiTurnEvaluationInput
from vivavoce.models.model import Model
from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.context import TestContext, TestState
from vivavoce.penelope.judging import Judges, material_of
from vivavoce.penelope.result import TestResult, TurnMetrics
from vivavoce.penelope.review import TesterReview
from vivavoce.penelope.stopping import Limits, Stop, StoppingCondition, TestStatus, TimeoutCondition, conditions
from vivavoce.penelope.strategies.openings import Openings
from vivavoce.penelope.strategies.strategy import Strategy
from vivavoce.penelope.tester import Tester
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool
from vivavoce.penelope.turn_loop import OnTurn, TurnLoop
from vivavoce.penelope.verdict import Verdict, decide
from vivavoce.records.failure import Failure, failure_of
from vivavoce.targets.dialogue import Dialogue
from vivavoce.targets.lane import Lane
from vivavoce.targets.target import Opening


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent brings to every test it holds; `judge` is for what has no judge of its own."""

    model: Model
    judge: Model
    goal: BaseMultiTurnMetric
    metrics: Sequence[BaseMultiTurnMetric]
    guards: Sequence[BaseMultiTurnMetric]
    tools: Sequence[Tool]
    strategy: Strategy
    checks: Sequence[MessageCheck]
    limits: Limits
    conditions: Sequence[StoppingCondition] = ()
    every: int = 1
    watch: bool = False
    transparent: bool = True
    review: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    context_tokens: int = 60_000


@dataclass(frozen=True, slots=True)
class Exam:
    """One test to be held: what it is about, with whom, and who is told of each turn."""

    setup: Setup
    context: TestContext
    lane: Lane
    opening: Callable[[], Opening]
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    on_turn: OnTurn | None = None

    async def hold(self) -> TestResult:
        """Hold the test; one that fails by the tester's own fault is held once more, and the first is kept apart.

        Raises:
            BudgetExhausted: a limit on calls or cost that holds for more than this test is reached.
        """
        first = await self._once()
        if not self.setup.review or first.blame != "tester" or first.stopped_by == "tester_down":
            return first
        second = await self._once()
        return second.model_copy(update={"discarded": [first]})

    async def _once(self) -> TestResult:
        begun = datetime.now(UTC)
        if not self.context.goal.strip():
            return _nothing_to_do(self.context, "the goal is empty; say what the test is to reach", begun)
        dialogue = Dialogue(self.lane, self.opening)
        try:
            return await self._examine(dialogue, begun)
        finally:
            await dialogue.close()

    async def _examine(self, dialogue: Dialogue, begun: datetime) -> TestResult:
        state = TestState(self.context, stateless=dialogue.stateless)
        loop = self._loop(dialogue, state)
        stop, failure = await self._led(loop)
        evaluation = await loop.judges.at_end(state)
        verdict = decide(state, stop, evaluation)
        review = await self._review(state, stop, verdict)
        blame, why = verdict.blame, verdict.blame_reason
        if review is not None and review.passed is False:
            blame, why = "tester", review.reasoning or ""
        return TestResult.model_construct(
            status=verdict.status,
            goal_achieved=verdict.goal_achieved,
            target_passed=verdict.target_passed,
            stop_reason=stop.reason,
            stopped_by=stop.condition,
            context=self.context,
            opening=list(state.opening),
            history=state.turns,
            unfinished=state.steps,
            findings=_findings(state),
            evaluation=evaluation,
            criteria=verdict.criteria,
            metrics_history=[
                TurnMetrics.model_construct(turn=m.turn, results=m.results) for m in state.metrics_history
            ],
            blame=blame,
            blame_reason=why,
            failure=failure or _failure_of(state),
            review=review,
            usage=state.usage,
            metadata=self._metadata(state, loop),
            start_time=begun,
            end_time=datetime.now(UTC),
            discarded=[],
        )

    async def _led(self, loop: TurnLoop) -> tuple[Stop, Failure | None]:
        """Lead the conversation until something stops it; what hangs is interrupted when the time is over."""
        scope = asyncio.timeout(self.setup.limits.seconds)
        try:
            async with scope:
                return await loop.run(), None
        except TimeoutError:
            if not scope.expired():
                raise
            stop = TimeoutCondition(self.setup.limits.seconds)
            return stop.check(loop.state) or Stop(stop.name, TestStatus.TIMEOUT, "the time is over"), None
        except Fault as fault:
            failure = failure_of(fault, "tester")
            return Stop("broken", TestStatus.ERROR, failure.message, failure.blame), failure

    def _loop(self, dialogue: Dialogue, state: TestState) -> TurnLoop:
        setup = self.setup
        send = TargetInteractionTool(dialogue, self.files)
        tools = {one.name: one.begin(state) for one in (send, *setup.tools)}
        tester = Tester(setup.model, self.context, tools, setup.settings, setup.transparent, setup.context_tokens)
        openings = self.context.openings
        return TurnLoop(
            state=state,
            tester=tester,
            tools=tools,
            send=send,
            strategy=Openings(openings, setup.strategy) if openings else setup.strategy,
            checks=setup.checks,
            judges=Judges(setup.goal, setup.judge, setup.metrics, setup.guards, setup.every, setup.watch),
            conditions=conditions(setup.limits, setup.conditions),
            max_steps=setup.limits.steps,
            on_turn=self.on_turn,
        )

    async def _review(self, state: TestState, stop: Stop, verdict: Verdict) -> MetricResult | None:
        """Ask whether a failure is the tester's own doing, where that is open."""
        context = self.context
        if not self.setup.review or verdict.target_passed is not False or verdict.goal_achieved:
            return None
        if context.adversarial or stop.blame is not None or any(not one.met for one in verdict.criteria):
            return None
        brief = {
            "scenario": context.scenario,
            "persona": context.persona.model_dump(exclude_defaults=True) if context.persona else None,
            "facts": context.facts or None,
            "restrictions": list(context.restrictions) or None,
            "ended_by": "tester" if stop.condition == "tester_left" else "limit",
        }
        known = {name: value for name, value in brief.items() if value is not None}
        given: MultiTurnEvaluationInput = material_of(state).model_copy(update={"context": known})
        result = await TesterReview(self.setup.judge).measured(given)
        state.spend("judge", result.usage)
        return result

    def _metadata(self, state: TestState, loop: TurnLoop) -> dict[str, Any]:
        setup = self.setup
        return {
            "target": self.lane.target.name,
            "tester": setup.model.name,
            "goal_metric": setup.goal.name,
            "judge": (setup.goal.model or setup.judge).name,
            "strategy": setup.strategy.name,
            "counts": dict(state.counts),
            "condensed_turns": loop.tester.memory.condensed,
            "session_id": loop.send.dialogue.session_id,
            "seconds": state.seconds,
        }


def _findings(state: TestState) -> list[str]:
    """Return what analysis found, and what the last judgement of the goal rests on."""
    judged = state.progress[-1].findings if state.progress else []
    return [*state.findings, *(one for one in judged if one not in state.findings)]


def _failure_of(state: TestState) -> Failure | None:
    """Return the failure that the test ended with, None where it ended without one."""
    if state.tester_failures:
        return state.tester_failures[-1]
    return state.turns[-1].exchange.failure if state.turns else None


def _nothing_to_do(context: TestContext, why: str, begun: datetime) -> TestResult:
    failure = Failure(blame="suite", kind="goal", message=why)
    return TestResult(
        status=TestStatus.ERROR,
        goal_achieved=False,
        stop_reason=why,
        stopped_by="no_goal",
        context=context,
        blame="suite",
        blame_reason=why,
        failure=failure,
        start_time=begun,
        end_time=datetime.now(UTC),
    )
