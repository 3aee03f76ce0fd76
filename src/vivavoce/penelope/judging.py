"""Judging a test while it goes on and when it is over: the goal, the guards, and the metrics that only watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from vivavoce.comparing.negations import is_about_act
from vivavoce.errors import ModelFault
from vivavoce.messages import ConversationHistory
from vivavoce.metrics.evidence import CRITERION, PROHIBITION
from vivavoce.metrics.joint import JointJudge
from vivavoce.metrics.judged.contract import ContractMetric
from vivavoce.metrics.judged.false_statements import false_statements_of, share_words, spoken_words
from vivavoce.metrics.judged.rules import SECOND_LOOK
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.metrics.question import carry_out
from vivavoce.metrics.result import MetricResult
from vivavoce.metrics.streaming import Stream
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.penelope.attack import CONTESTED, AttackJudge, TargetRefusal, attack_was_tried
from vivavoce.penelope.context import GoalProgress, TestContext, TestState, TurnMetrics
from vivavoce.penelope.review import TesterReview
from vivavoce.penelope.simple_goal import SimpleGoalEvaluator
from vivavoce.records.score import Finding, Usage, shorten
from vivavoce.safe_text import safe
from vivavoce.user_code import is_cancelled

log = logging.getLogger("vivavoce")
T = TypeVar("T")

GOAL = "goal_achievement"
"""The name of the result of the goal metric, whatever the metric is called."""

CONTRACT = "contract"
"""The name of the judgement of what the target must and must not do."""


_ASKED_ALONE = ("format", "evidence")
"""What may be wrong with an answer about goal and contract together so that each is asked for alone."""

JOINT = "joint"
"""Where a result says that one reply answered it together with others."""

FALLBACK = "fallback_for"
"""Where a result of the simple question says what was wrong with the first answer."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The metrics of an agent: for the goal, for watching, as guards, and for a second opinion.

    `contract` judges what the target must and must not do, `second` the goal where the metric of the goal broke, unless
    that one is `simple` already. `review` judges the tester where a test failed. `attack` judges adversarial
    goals: it replaces `goal` where `attack_decides`; otherwise it says whether an attack that the target withstood was
    tried. `refusal` says whether the target refused. `joint` asks for goal and contract in one call, `joint_attack` for
    attack and `attack_contract`, which sees no policy either; they are None where these two cannot be joined.
    """

    goal: BaseMultiTurnMetric
    metrics: Sequence[BaseMultiTurnMetric]
    guards: Sequence[BaseMultiTurnMetric]
    contract: ContractMetric
    second: SimpleGoalEvaluator
    review: TesterReview
    attack: AttackJudge
    refusal: TargetRefusal
    simple: bool = False
    attack_decides: bool = True
    attack_contract: ContractMetric | None = None
    joint: JointJudge | None = None
    joint_attack: JointJudge | None = None

    @property
    def all(self) -> tuple[BaseMultiTurnMetric, ...]:
        """All metrics."""
        apart = (self.contract, self.second, self.review, self.attack, self.refusal)
        return (self.goal, *self.metrics, *self.guards, *apart)

    def asks_about_attack(self, context: TestContext) -> bool:
        """Say whether `attack` judges the goal of a test."""
        return context.adversarial and self.attack_decides

    def goal_for(self, context: TestContext) -> BaseMultiTurnMetric:
        """Return the metric that judges the goal of a test."""
        return self.attack if self.asks_about_attack(context) else self.goal

    def contract_for(self, context: TestContext) -> ContractMetric:
        """Return the metric that judges the rules of a test."""
        return self.attack_contract or self.contract if self.asks_about_attack(context) else self.contract

    def joint_for(self, context: TestContext) -> JointJudge | None:
        """Return what asks for that metric and the contract in one call."""
        return self.joint_attack if self.asks_about_attack(context) else self.joint


@dataclass
class Judges:
    """The metrics of one test, and their latest results.

    The goal is judged when every `every`-th turn ends, from the least number of turns on; guards after each turn;
    watching metrics with the goal where `watch` is set, and all of them at the end. No question is asked twice about
    the same conversation and findings, and a verdict that takes longer than `seconds` is an error.

    A false statement that the judge of the goal shows in one turn stays in its later results. Where an attack is said
    to have succeeded and a rule about the same act to be kept, the first is asked once more; if both stand, the result
    is an error of the judge. Where one reply answers both, it is confirmed in a request about the attack alone.
    At the end, a pass that rests on a judge that found nothing needs a second look.
    """

    panel: Panel
    every: int = 1
    watch: bool = False
    seconds: float | None = None
    _stream: Stream | None = None
    _latest: dict[str, tuple[tuple[int, int], MetricResult]] = field(default_factory=dict[str, Any])
    _warned: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _false_statements: Sequence[Finding] = ()
    _earlier: Sequence[Finding] = ()

    async def after_turn(self, state: TestState) -> None:
        """Judge what is due now that a turn has ended.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        number = len(state.turns)
        due = number % self.every == 0 and number >= state.context.min_turns
        panel = self.panel
        watching = [*panel.guards, *(panel.metrics if due and self.watch else ())]
        named_metrics = [(metric.name, metric) for metric in watching]
        last = number >= state.context.max_turns
        goal = [(GOAL, panel.goal_for(state.context)), *self._contract(state, last)] if due else []
        results = await self._measured(state, [*goal, *named_metrics])
        if due:
            results |= await self._reconcile(state, results)
            self._note(state, results[GOAL])
        state.guarded = next(
            (results[guard.name] for guard in panel.guards if results[guard.name].passed is False), None
        )
        if results:
            state.metrics_history.append(TurnMetrics.model_construct(turn=number, results=results))

    async def at_end(self, state: TestState, look_again: bool = False) -> dict[str, MetricResult]:
        """Return the results of all metrics for the whole test, after a second look if asked; the goal first.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
        """
        goal_is_current = self._is_current(GOAL, state)
        panel = self.panel
        watching = [(metric.name, metric) for metric in (*panel.metrics, *panel.guards)]
        results = await self._measured(
            state, [(GOAL, panel.goal_for(state.context)), *watching, *self._contract(state)]
        )
        if not goal_is_current:
            results |= await self._reconcile(state, results)
        seconds = await self._looked_through(state, results) if look_again else {}
        if goal_is_current and GOAL in seconds:
            state.progress.pop()
        if not goal_is_current or GOAL in seconds:
            self._note(state, {**results, **seconds}[GOAL])
        return {**results, **seconds}

    async def _looked_through(self, state: TestState, results: Mapping[str, MetricResult]) -> dict[str, MetricResult]:
        """Return the results of a second look, where a pass rests on a judge that found nothing.

        That is so for an attack that nothing succeeded in, unless a rule about the same act confirms it, and for what
        must not happen. A judge that overlooks a sentence has no quote that code could check.
        """
        context, goal, contract = state.context, results[GOAL], results.get(CONTRACT)
        is_attack = self.panel.asks_about_attack(context)
        passes = goal.state == "scored" and goal.passed is (not is_attack)
        if not passes or not any(turn.answered for turn in state.turns) or (contract and contract.passed is not True):
            return {}
        reading, seconds = self._grown(state).reading, dict[str, MetricResult]()
        looking = {**(reading.metric_input.context or {}), SECOND_LOOK: True}
        others = [rule for rule in context.must_not if not is_attack or not is_about_act(rule, context.goal)]
        is_confirmed = len(others) < len(context.must_not)
        if is_attack and not is_confirmed and attack_was_tried(goal):
            second = await self._asked_again(GOAL, self.panel.attack, reading.knowing(context=looking), state)
            seconds[GOAL] = self._replace(GOAL, goal, second, state)
        if contract and others:
            of_rules = self._for(CONTRACT, reading, state).knowing(context=looking)
            second = await self._asked_again(CONTRACT, self.panel.contract_for(context), of_rules, state)
            seconds[CONTRACT] = self._replace(CONTRACT, contract, second, state)
        return seconds

    async def _reconcile(self, state: TestState, results: Mapping[str, MetricResult]) -> dict[str, MetricResult]:
        """Return the results of attack and contract after a second look, where a rule is about the same act.

        A reply that answers both is confirmed: the attack is asked alone, and so is the contract where they disagree.
        """
        context, goal = state.context, results[GOAL]
        is_judged = self.panel.asks_about_attack(context) and goal.state == "scored" and goal.passed is not None
        if not is_judged or not any(is_about_act(rule, context.goal) for rule in context.must_not):
            return {}
        if goal.passed is False and CONTRACT not in results:  # nothing is decided yet
            return {}
        contract = results.get(CONTRACT) or (await self._measured(state, self._contract(state)))[CONTRACT]
        broken = _broken_rule(contract, context.goal)
        if broken is None:
            return {CONTRACT: contract}
        if goal.passed and not broken:
            return {GOAL: await self._ask_contested(state, goal, contract), CONTRACT: contract}
        if JOINT in goal.extra and JOINT in contract.extra:
            return await self._confirm(state, goal, contract)
        return {CONTRACT: contract}

    async def _ask_contested(self, state: TestState, goal: MetricResult, contract: MetricResult) -> MetricResult:
        """Return the second answer about an attack that is said to have succeeded while a rule about it was kept."""
        attack = self.panel.attack
        rule = next(finding.what for finding in contract.findings if _is_about(finding, state.context.goal))
        reading = self._grown(state).reading
        contested = reading.knowing(context={**(reading.metric_input.context or {}), CONTESTED: rule})
        second = await self._asked_again(GOAL, attack, contested, state)
        if second.state == "scored" and second.passed is True:
            message = f"the judge says that the attack succeeded, and that the assistant did not do this: {rule!r}"
            second = attack.failed(ModelFault(message, kind="contradiction", evidence=second.reasoning))
        return self._replace(GOAL, goal, second, state)

    async def _confirm(self, state: TestState, goal: MetricResult, contract: MetricResult) -> dict[str, MetricResult]:
        """Return attack and contract after the attack was asked alone, and the contract where they disagree.

        An answer that changes has to agree with the contract; otherwise it is an error of the judge.
        """
        attack, reading = self.panel.attack, self._grown(state).reading
        second = await self._asked_again(GOAL, attack, reading, state)
        if second.state == "scored" and second.passed is not _broken_rule(contract, state.context.goal):
            alone = self.panel.contract_for(state.context)
            third = await self._asked_again(CONTRACT, alone, self._for(CONTRACT, reading, state), state)
            contract = self._replace(CONTRACT, contract, third, state)
            if second.passed not in (goal.passed, _broken_rule(contract, state.context.goal)):
                message = "the judge's answers about the attack contradict each other, and those about the rule"
                second = attack.failed(ModelFault(message, kind="contradiction", evidence=second.reasoning))
        return {GOAL: self._replace(GOAL, goal, second, state), CONTRACT: contract}

    async def _asked_again(
        self, name: str, metric: BaseMultiTurnMetric, reading: Reading, state: TestState
    ) -> MetricResult:
        """Return the result of a metric that is asked alone for once more; the question is counted."""
        state.counts["confirmations"] += 1
        result = await self.in_time(self._measure(name, metric, reading), metric)
        state.spend("judge", result.usage)
        return result

    def _replace(self, name: str, first: MetricResult, second: MetricResult, state: TestState) -> MetricResult:
        """Return the second result with the usage of both, now the latest of its name."""
        second = second.model_copy(update={"usage": _sum(first.usage, second.usage)})
        self._latest[name] = _moment(state), second
        self._warn(name, second)
        return second

    def _with_earlier_statements(self, result: MetricResult) -> MetricResult:
        """Return the result of the goal with the false statements that were shown in earlier turns."""
        if result.state != "scored":
            return result
        latest = false_statements_of(result.findings)
        earlier = [
            false_statement
            for false_statement in self._false_statements
            if not any(_same_statement(false_statement, other) for other in latest)
        ]
        self._false_statements = (*earlier, *latest)
        outcomes = [finding for finding in result.findings if finding.kind == CRITERION]
        self._earlier = tuple({_wording(finding): finding for finding in (*self._earlier, *outcomes, *latest)}.values())
        return result.model_copy(update={"findings": (*result.findings, *earlier)}) if earlier else result

    def _contract(self, state: TestState, due: bool = True) -> Sequence[tuple[str, BaseMultiTurnMetric]]:
        ruled = state.context.must or state.context.must_not
        return [(CONTRACT, self.panel.contract_for(state.context))] if due and ruled else []

    def metric_input(self, state: TestState) -> MultiTurnEvaluationInput:
        """Return the input of metrics for a test as it is now."""
        return self._grown(state).metric_input

    async def _measured(
        self, state: TestState, metrics: Sequence[tuple[str, BaseMultiTurnMetric]]
    ) -> dict[str, MetricResult]:
        fresh = [(name, metric) for name, metric in metrics if not self._is_current(name, state)]
        if not fresh:
            return {name: self._latest[name][1] for name, _ in metrics}
        reading, now = self._grown(state).reading, _moment(state)
        waiting = [name for name, _ in fresh]
        joined = self._joint(reading, state) if {GOAL, CONTRACT} <= set(waiting) else None
        alone = [(name, metric) for name, metric in fresh if joined is None or name not in (GOAL, CONTRACT)]
        measured = await _all_results(
            [
                *([joined] if joined else []),
                *(self._alone(name, metric, reading, state) for name, metric in alone),
            ]
        )
        for name, result in (item for results in measured for item in results.items()):
            if name == GOAL:
                result = self._with_earlier_statements(result)
            self._latest[name] = now, result
            state.spend("judge", result.usage)
            self._warn(name, result)
        return {name: self._latest[name][1] for name, _ in metrics}

    async def in_time(self, judging: Awaitable[MetricResult], metric: BaseMultiTurnMetric) -> MetricResult:
        """Return the result of a metric, an error if it takes longer than a whole test may."""
        return await self._in_time(judging, metric.name, metric.failed)

    async def _in_time(self, judging: Awaitable[T], name: str, failed: Callable[[ModelFault], T]) -> T:
        scope = asyncio.timeout(self.seconds)
        try:
            async with scope:
                return await judging
        except TimeoutError:
            if not scope.expired():
                raise
            return failed(ModelFault(f"{name} gave no verdict within {self.seconds:g} s", kind="timeout"))
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return failed(ModelFault(f"{name} cancelled its own task"))

    def _grown(self, state: TestState) -> Stream:
        """Return the conversation for the metrics, with the turns added that are new since the last call."""
        if self._stream is None:
            self._stream = Stream(metric_input_of(state))
            self._stream.take(state.opening)
        stream = self._stream
        for turn in state.turns[stream.turns :]:
            stream.take(turn.exchange.messages)
            stream.close()
        metric_input = metric_input_of(state)
        stream.know(context=metric_input.context, turn_seconds=metric_input.turn_seconds)
        return stream

    def _joint(self, reading: Reading, state: TestState) -> Coroutine[Any, Any, dict[str, MetricResult]] | None:
        """Ask for the goal and the contract in one call, None where that cannot be.

        What the joint answer leaves open is asked alone.
        """
        panel = self.panel
        joint = panel.joint_for(state.context)
        if joint is None:
            return None
        metrics = {GOAL: panel.goal_for(state.context), CONTRACT: panel.contract_for(state.context)}
        readings = {metric.name: self._for(name, reading, state) for name, metric in metrics.items()}

        async def ask_jointly() -> dict[str, MetricResult]:
            together = await self._in_time(
                joint.measured_from(readings),
                " and ".join(joint.names),
                lambda fault: {metric.name: metric.failed(fault) for metric in metrics.values()},
            )
            results = {name: together[metric.name] for name, metric in metrics.items()}
            for name, metric in metrics.items():
                failure = results[name].failure
                if failure is not None and failure.kind in _ASKED_ALONE:
                    again = (await self._alone(name, metric, reading, state))[name]
                    results[name] = again.model_copy(update={"usage": _sum(results[name].usage, again.usage)})
            return results

        return ask_jointly()

    def _for(self, name: str, reading: Reading, state: TestState) -> Reading:
        """Return what a metric gets to know: the contract has the rules of the test, the goal its earlier findings."""
        if name == CONTRACT:
            return reading.knowing(must=state.context.must, must_not=state.context.must_not)
        return reading.knowing(earlier=tuple(self._earlier)) if name == GOAL and self._earlier else reading

    async def _alone(
        self, name: str, metric: BaseMultiTurnMetric, reading: Reading, state: TestState
    ) -> dict[str, MetricResult]:
        return {name: await self.in_time(self._measure(name, metric, self._for(name, reading, state)), metric)}

    async def _measure(self, name: str, metric: BaseMultiTurnMetric, reading: Reading) -> MetricResult:
        result = await carry_out(metric.plan_for(reading))
        is_goal = name == GOAL and metric is self.panel.goal
        return await self._second_opinion(result, reading) if is_goal else result

    async def _second_opinion(self, result: MetricResult, reading: Reading) -> MetricResult:
        """Ask the simple question where the judge's answer to the goal metric could not be read; the result says so."""
        unreadable = result.error is not None and (result.error.blame, result.error.kind) == ("judge", "format")
        if not unreadable or self.panel.simple:
            return result
        second = await carry_out(self.panel.second.plan_for(reading))
        usage = _sum(result.usage, second.usage)
        if second.state != "scored":
            return result.model_copy(update={"usage": usage, "extra": {**result.extra, "fallback": second.reason}})
        assert result.error is not None
        reason = f"asked more simply, for the first answer could not be read: {second.reason or ''}"
        extra = {**second.extra, FALLBACK: result.error.message}
        return second.model_copy(update={"usage": usage, "extra": extra, "reason": reason})

    def _warn(self, name: str, result: MetricResult) -> None:
        """Log the first time in a test that a metric gave no result, or that its question was asked more simply."""
        if result.error is not None:
            what, why = "could not be measured", str(result.error)
        elif FALLBACK in result.extra:
            what, why = "was asked more simply", f"the first answer could not be read: {result.extra[FALLBACK]}"
        else:
            return
        if (name, what) not in self._warned:
            self._warned.add((name, what))
            log.warning("%s %s: %s", safe(name), what, _one_line(why))

    def _is_current(self, name: str, state: TestState) -> bool:
        return name in self._latest and self._latest[name][0] == _moment(state)

    def _note(self, state: TestState, result: MetricResult) -> None:
        progress = progress_of(result)
        state.progress.append(progress)
        if state.turns:
            state.turns[-1] = state.turns[-1].model_copy(update={"evaluation": progress.reasoning})


async def _all_results(
    judgings: Sequence[Coroutine[Any, Any, dict[str, MetricResult]]],
) -> list[dict[str, MetricResult]]:
    """Wait for every verdict; where one ends the test, the others are not left running."""
    if len(judgings) == 1:
        return [await judgings[0]]
    tasks = [asyncio.ensure_future(judging) for judging in judgings]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _is_about(finding: Finding, goal: str) -> bool:
    """Say whether a finding is about a rule that forbids what an attack is after."""
    return finding.kind == PROHIBITION and is_about_act(finding.what, goal)


def _broken_rule(contract: MetricResult, goal: str) -> bool | None:
    """Say whether a rule that forbids what an attack is after was broken, None where that is unknown."""
    related = [finding.state for finding in contract.findings if _is_about(finding, goal)]
    return "fail" in related if related and contract.state == "scored" else None


def note_unjudged(what: str, result: MetricResult) -> None:
    """Log that a judge did not say what the words of the target leave open, so that they decide alone."""
    why = result.error or result.reason or "no verdict"
    log.warning("%s could not be judged; used rules only: %s", what, _one_line(str(why)))


def _one_line(text: str) -> str:
    return " ".join((shorten(safe(text), 300) or "").split())


def progress_of(result: MetricResult) -> GoalProgress:
    """Return the progress that a result of the goal metric shows; a failed judgement shows none."""
    findings: object = result.extra.get("findings")
    texts = cast("list[object]", findings) if isinstance(findings, list) else [quote.text for quote in result.evidence]
    return GoalProgress(
        goal_achieved=result.state == "scored" and result.passed is True,
        confidence=result.confidence or 0.0,
        reasoning=result.reasoning or "",
        findings=list(map(str, texts)),
        value=result.value if result.state == "scored" else None,
        inconclusive=result.state != "scored",
    )


def metric_input_of(state: TestState) -> MultiTurnEvaluationInput:
    """Return the input of metrics without the conversation; its context holds what analysis found."""
    context = state.context
    known: dict[str, Any] = dict(context.context or {})
    if state.findings:
        answered_count = sum(turn.answered for turn in state.turns)
        known["analysis"] = {
            "findings": list(state.findings),
            "turn_count": len(state.turns),
            "successful_interactions": answered_count,
        }
    return MultiTurnEvaluationInput.model_construct(
        conversation_history=ConversationHistory.model_construct(messages=[], conversation_id=None),
        goal=context.goal,
        instructions=context.instructions,
        context=known or None,
        policy=context.policy,
        reference=None,
        trial=context.trial,
        must=(),
        must_not=(),
        calls=state.visible_calls,
        turn_seconds=tuple(turn.exchange.seconds for turn in state.turns),
    )


def _same_statement(finding: Finding, other: Finding) -> bool:
    """Say whether two findings are about the same false statement: one in the same turn, or the same words."""
    pairs = [(a, b) for a in spoken_words(finding) for b in spoken_words(other)]
    return any(a.turn == b.turn or share_words(a.text, b.text) for a, b in pairs)


def _wording(finding: Finding) -> tuple[str, str, str, tuple[str, ...]]:
    """Return what tells a finding from others of the same conversation."""
    data = str(finding.data.get("kind", ""))
    return finding.kind, finding.what, data, tuple(quote.text for quote in finding.evidence)


def _moment(state: TestState) -> tuple[int, int]:
    return len(state.turns), len(state.findings)


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    return second if first is None else first if second is None else first + second
