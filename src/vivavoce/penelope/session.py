"""One test from beginning to end: lead the conversation, judge it, decide the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vivavoce.comparing.negations import act_text
from vivavoce.errors import Fault, VivavoceError
from vivavoce.metrics.result import MetricResult
from vivavoce.models.model import REPEAT, Model, new_attempt
from vivavoce.penelope.checks.check import MessageCheck
from vivavoce.penelope.context import TestContext, TestState
from vivavoce.penelope.judging import GOAL, Judges, Panel
from vivavoce.penelope.result import TestResult
from vivavoce.penelope.reviewing import after_attack, after_failure, brief_of, due
from vivavoce.penelope.stopping import Limits, Stop, StoppingCondition, TimeoutCondition, conditions, first_stop
from vivavoce.penelope.strategies.openings import Openings
from vivavoce.penelope.strategies.rule_exploring import RuleExploring, rules_to_try
from vivavoce.penelope.strategies.strategy import Strategy, phases_of
from vivavoce.penelope.tester import Tester
from vivavoce.penelope.tools.target_interaction import TargetInteractionTool
from vivavoce.penelope.tools.tool import Tool
from vivavoce.penelope.turn import Turn
from vivavoce.penelope.turn_loop import UNANSWERED, OnTurn, TurnLoop
from vivavoce.penelope.verdict import Verdict, decide
from vivavoce.records.score import CANCELLED, Failure, Usage, failure_of
from vivavoce.records.trajectory import VISIBLE_CALLS, Phase, TestStatus, visible_calls
from vivavoce.targets.dialogue import Dialogue, TargetChannel
from vivavoce.targets.target import Opening
from vivavoce.user_code import foreign_code

OnCancelled = Callable[[TestResult], object]

_NO_USE_HOLDING_AGAIN = ("tester_down", "timeout", "broken")


@dataclass(frozen=True, slots=True)
class Setup:
    """What an agent brings to every test it holds."""

    model: Model
    panel: Panel
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
class TestSession:
    """One test to be held: its context, its target, and who is notified of each turn and of a cancellation.

    `earlier` are turns that were led before, from which it goes on.
    """

    setup: Setup
    context: TestContext
    channel: TargetChannel
    opening: Callable[[], Opening]
    files: Mapping[str, Path] = field(default_factory=dict[str, Path])
    on_turn: OnTurn | None = None
    on_cancelled: OnCancelled | None = None
    earlier: Sequence[Turn] = ()

    async def hold(self) -> TestResult:
        """Hold the test; one that fails by the tester's own fault is held once more, and the first is kept apart.

        Where the test is cancelled, `on_cancelled` gets what was held of it, and the cancellation goes on.

        Raises:
            BudgetExhausted: a limit on calls or cost that holds for more than this test is reached.
        """
        first = await self._once()
        if not self.setup.review or first.blame != "tester" or first.stopped_by in _NO_USE_HOLDING_AGAIN:
            return first
        spent = sum(usage.cost or 0.0 for usage in first.usage.values())
        limits = self.setup.limits.less(seconds=first.duration_seconds or 0.0, dollars=spent)
        on_cancelled = None if self.on_cancelled is None else _after(first, self.on_cancelled)
        again = replace(self, setup=replace(self.setup, limits=limits), on_cancelled=on_cancelled)
        with new_attempt(REPEAT):
            return _join_tries(first, await again._once())

    async def _once(self) -> TestResult:
        start_time = datetime.now(UTC)
        dialogue = Dialogue(self.channel, self.opening)
        try:
            result = await self._examine(dialogue, start_time)
            world = await dialogue.world()
            return result if world is None else result.model_copy(update={"state": world})
        finally:
            await dialogue.close()

    async def _examine(self, dialogue: Dialogue, start_time: datetime) -> TestResult:
        state = TestState(self.context, stateless=dialogue.stateless, visible_calls=visible_calls(self.channel.target))
        try:
            with foreign_code():
                loop = self._loop(dialogue, state)
        except Exception as error:  # a user-defined tool or condition cannot begin
            return _result_without_test(self.context, "broken", failure_of(error, "tester"), start_time)
        try:
            return await self._judge(loop, start_time)
        except asyncio.CancelledError:
            if self.on_cancelled is not None:
                self.on_cancelled(self._cancelled_result(loop, start_time))
            raise

    async def _judge(self, loop: TurnLoop, start_time: datetime) -> TestResult:
        state = loop.state
        stop, failure = await self._lead(loop)
        evaluation = await loop.judges.at_end(state, self.setup.review)
        verdict = decide(state, stop, evaluation, [guard.name for guard in self.setup.panel.guards])
        verdict, review = await self._review(loop, stop, verdict, evaluation[GOAL])
        result = self._result(loop, start_time, stop, verdict, failure or _failure_of(state))
        return result.model_copy(update={"evaluation": evaluation, "review": review})

    def _cancelled_result(self, loop: TurnLoop, start_time: datetime) -> TestResult:
        """Return what was held of a test that is cancelled; it is judged by nobody."""
        state = loop.state
        failure = Failure(blame="environment", kind=CANCELLED, message="the test was cancelled")
        if state.turns and state.turns[-1].exchange.failure == UNANSWERED:
            exchange = state.turns[-1].exchange.model_copy(update={"failure": failure})
            state.turns[-1] = state.turns[-1].model_copy(update={"exchange": exchange})
        stop = Stop(CANCELLED, TestStatus.ABORTED, failure.message)
        verdict = Verdict(stop.status, False, None, [], failure.blame, failure.message)
        return self._result(loop, start_time, stop, verdict, failure)

    def _result(
        self, loop: TurnLoop, start_time: datetime, stop: Stop, verdict: Verdict, failure: Failure | None
    ) -> TestResult:
        """Return the result of a test, without any evaluation."""
        state = loop.state
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
            evaluation={},
            criteria=verdict.criteria,
            coverage=_coverage(self.setup.strategy, state),
            metrics_history=state.metrics_history,
            blame=verdict.blame,
            blame_reason=verdict.blame_reason,
            failure=failure,
            review=None,
            usage=state.usage,
            metadata=self._metadata(state, loop),
            start_time=start_time,
            end_time=datetime.now(UTC),
            discarded=[],
        )

    async def _lead(self, loop: TurnLoop) -> tuple[Stop, Failure | None]:
        """Lead the conversation until something stops it; what hangs is interrupted when the time is over."""
        scope = asyncio.timeout(self.setup.limits.seconds)
        try:
            async with scope:
                if failure := await loop.take_up(self.earlier):
                    return _broken_stop(failure)
                stop = first_stop(loop.conditions, loop.state) if self.earlier else None
                return stop or await loop.run(), None
        except TimeoutError:
            if not scope.expired():
                raise
            stop = TimeoutCondition(self.setup.limits.seconds)
            return stop.check(loop.state) or Stop(stop.name, TestStatus.TIMEOUT, "the time is over"), None
        except Fault as fault:
            return _broken_stop(failure_of(fault, "tester"))
        except VivavoceError:
            raise
        except Exception as error:
            return _broken_stop(failure_of(error, "tester"))

    def _loop(self, dialogue: Dialogue, state: TestState) -> TurnLoop:
        setup = self.setup
        send = TargetInteractionTool(dialogue, self.files)
        tools = {tool.name: tool.begin(state) for tool in (send, *setup.tools)}
        tester = Tester(setup.model, self.context, tools, setup.settings, setup.transparent, setup.context_tokens)
        openings = self.context.openings
        strategy = RuleExploring(setup.strategy) if self.context.tries_rules else setup.strategy
        return TurnLoop(
            state=state,
            tester=tester,
            tools=tools,
            send=send,
            strategy=Openings(openings, strategy) if openings else strategy,
            checks=setup.checks,
            judges=Judges(setup.panel, setup.every, setup.watch, setup.limits.seconds),
            conditions=conditions(setup.limits, setup.conditions),
            max_steps=setup.limits.steps,
            on_turn=self.on_turn,
        )

    async def _review(
        self, loop: TurnLoop, stop: Stop, verdict: Verdict, goal: MetricResult
    ) -> tuple[Verdict, MetricResult | None]:
        """Return the verdict after a review of the tester, and the review; None where the test needs none."""
        context, state, panel = self.context, loop.state, self.setup.panel
        what = due(state, stop, verdict) if self.setup.review else None
        if what is None:
            return verdict, None
        if what == "attack" and panel.asks_about_attack(context):
            return after_attack(verdict, goal), None
        metric = panel.attack if what == "attack" else panel.review
        known = {
            "context": brief_of(state, stop),
            "must": context.must,
            "must_not": tuple(map(act_text, context.must_not)),
        }
        metric_input = loop.judges.metric_input(state).model_copy(update=known)
        result = await loop.judges.in_time(metric.measured(metric_input), metric)
        state.spend("judge", result.usage)
        return after_attack(verdict, result) if what == "attack" else after_failure(verdict, result, goal), result

    def _metadata(self, state: TestState, loop: TurnLoop) -> dict[str, Any]:
        setup = self.setup
        return {
            "target": self.channel.target.name,
            "tester": setup.model.name,
            "goal_metric": setup.panel.goal.name,
            "judge": _judge(setup.panel),
            "strategy": setup.strategy.name,
            "counts": dict(state.counts),
            "condensed_turns": loop.tester.memory.condensed,
            "session_id": loop.send.dialogue.session_id,
            "seconds": state.seconds,
            VISIBLE_CALLS: state.visible_calls,
        }


def _join_tries(first: TestResult, second: TestResult) -> TestResult:
    """Return the second try with the first one beside it, whose usage counts too."""
    roles = first.usage | second.usage
    total = {role: first.usage.get(role, Usage()) + second.usage.get(role, Usage()) for role in roles}
    return second.model_copy(update={"discarded": [first], "usage": total})


def _after(first: TestResult, on_cancelled: OnCancelled) -> OnCancelled:
    return lambda second: on_cancelled(_join_tries(first, second))


def _judge(panel: Panel) -> str | None:
    model = panel.goal.model or panel.contract.model
    return model.name if model else None


def _findings(state: TestState) -> list[str]:
    """Return the findings of analysis, and those that the last judgement of the goal rests on."""
    judged = state.progress[-1].findings if state.progress else []
    return [*state.findings, *(finding for finding in judged if finding not in state.findings)]


def _coverage(strategy: Strategy, state: TestState) -> list[Phase]:
    """Return the phases of a strategy that explores, and the rules to try, those that were not reached among them."""
    rules = [rule.sentence for rule in rules_to_try(state.context)]
    names = dict.fromkeys((*phases_of(strategy), *rules, *state.covered))
    return [Phase(name=name, turns=tuple(state.covered.get(name, ()))) for name in names]


def _failure_of(state: TestState) -> Failure | None:
    """Return the failure that the test ended with, None where it ended without one."""
    if state.tester_failures:
        return state.tester_failures[-1]
    return state.turns[-1].exchange.failure if state.turns else None


def _broken_stop(failure: Failure) -> tuple[Stop, Failure]:
    return Stop("broken", TestStatus.ERROR, failure.message, failure.blame), failure


def _result_without_test(context: TestContext, stopped_by: str, failure: Failure, start_time: datetime) -> TestResult:
    return TestResult(
        status=TestStatus.ERROR,
        goal_achieved=False,
        stop_reason=failure.message,
        stopped_by=stopped_by,
        context=context,
        blame=failure.blame,
        blame_reason=failure.message,
        failure=failure,
        start_time=start_time,
        end_time=datetime.now(UTC),
    )
