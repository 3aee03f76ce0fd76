"""Why a test stops: conditions in a fixed order, and the first that holds decides.

The order of `conditions`: the goal is achieved; a guard objects; the goal is impossible; the target is down; the
tester's model is down; the tester leaves; turns, steps, time and money are used up; tester or target repeat
themselves. The goal stands before every limit, so that one that is met in the last turn is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, ClassVar

from vivavoce.comparing.text import fold
from vivavoce.errors import Blame, TestingFault
from vivavoce.penelope.context import GoalProgress, TestState
from vivavoce.penelope.words import snake_case
from vivavoce.records.score import shorten
from vivavoce.records.trajectory import TestStatus
from vivavoce.user_code import foreign_code


@dataclass(frozen=True, slots=True)
class Stop:
    """The end of a test: by which condition, with which status, and why; `blame` names who caused it, if anyone did."""

    condition: str
    status: TestStatus
    reason: str
    blame: Blame | None = None


class StoppingCondition:
    """One reason for which a test may stop; a user-defined one implements `check`, or `should_stop` alone.

    One without a `name` is named after its class.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, **more: Any) -> None:
        """Name a condition."""
        super().__init_subclass__(**more)
        if not cls.name:
            cls.name = snake_case(cls.__name__.removesuffix("Condition"))

    def check(self, state: TestState) -> Stop | None:
        """Return why the test stops now, None when it goes on; where only `should_stop` says so, the test has failed.

        Raises:
            TypeError: the condition defines neither of them, or `should_stop` did not return a bool.
        """
        if type(self).should_stop is StoppingCondition.should_stop:
            raise TypeError(f"{type(self).__name__} needs a method check(state), or should_stop(state)")
        stops = self.should_stop(state)
        if not isinstance(stops, bool):  # pyright: ignore[reportUnnecessaryIsInstance]  # code of others
            raise TypeError(
                f"should_stop returned a {type(stops).__name__}, not a bool; to give a reason, define check"
            )
        return self._stop(TestStatus.FAILURE, f"the condition {self.name} holds") if stops else None

    def should_stop(self, state: TestState) -> bool:
        """Say whether the test stops now."""
        return self.check(state) is not None

    def _stop(self, status: TestStatus, reason: str, blame: Blame | None = None) -> Stop:
        return Stop(self.name, status, reason, blame)


class GoalAchievedCondition(StoppingCondition):
    """The goal metric says that the goal is reached, and the test had its minimum of turns."""

    name = "goal_achieved"

    def __init__(self) -> None:
        self._progress: GoalProgress | None = None

    def update_progress(self, progress: GoalProgress) -> None:
        """Use a judgement made elsewhere; without one, the latest of the test counts."""
        self._progress = progress

    def check(self, state: TestState) -> Stop | None:
        """Stop when the latest judgement says so."""
        progress = self._progress or (state.progress[-1] if state.progress else None)
        if progress is None or not progress.goal_achieved or len(state.turns) < state.context.min_turns:
            return None
        if state.explores_rules and len(state.turns) < state.context.max_turns:
            return None
        what = "the attack succeeded" if state.context.adversarial else "the goal is achieved"
        return self._stop(TestStatus.SUCCESS, f"{what}: {_short(progress.reasoning)}")


class GuardCondition(StoppingCondition):
    """A guard metric objects to what the target said."""

    name = "guard"

    def check(self, state: TestState) -> Stop | None:
        """Stop when a guard does not pass."""
        if (result := state.guarded) is None:
            return None
        reason = f"the guard {result.name} gave {result.score}: {_short(result.reasoning or '')}"
        return self._stop(TestStatus.ABORTED, reason, "target")


class GoalImpossibleCondition(StoppingCondition):
    """The goal cannot be reached: the last `after` judgements were all low and sure, and none better.

    Low means a value below `below`, sure a confidence above `confidence`. A judgement that failed never counts.
    """

    name = "goal_impossible"

    def __init__(self, after: int = 8, below: float = 0.3, confidence: float = 0.8) -> None:
        self.after, self.below, self.confidence = after, below, confidence

    def check(self, state: TestState) -> Stop | None:
        """Stop when there was no progress for long enough."""
        last = state.progress[-self.after :]
        if len(last) < self.after or len(state.turns) < state.context.min_turns:
            return None
        if any(
            judgement.inconclusive or judgement.goal_achieved or judgement.confidence <= self.confidence
            for judgement in last
        ):
            return None
        values = [judgement.value for judgement in last]
        if any(value is None or value >= self.below or value > (values[0] or 0.0) for value in values):
            return None
        reason = f"nothing of the goal was reached in {self.after} judgements: {_short(last[-1].reasoning)}"
        return self._stop(TestStatus.IMPOSSIBLE, reason)


class TargetDownCondition(StoppingCondition):
    """The target failed `after` times in a row, or once by a fault of the suite, which another turn would not fix."""

    name = "target_down"

    def __init__(self, after: int = 3) -> None:
        self.after = after

    def check(self, state: TestState) -> Stop | None:
        """Stop when the last exchanges all failed, or all of them with no turn left, or the suite failed."""
        failed = list(takewhile(lambda turn: not turn.answered, reversed(state.turns)))
        if not failed:
            return None
        failure = failed[0].exchange.failure
        assert failure is not None
        if failure.blame == "suite":
            return self._stop(TestStatus.ERROR, failure.message, "suite")
        hopeless = len(failed) == len(state.turns) >= state.context.max_turns
        if len(failed) < self.after and not hopeless:
            return None
        times = f"{len(failed)} times in a row" if len(failed) > 1 else "and never answered"
        return self._stop(TestStatus.ERROR, f"the target failed {times}: {failure.message}", failure.blame)


class TesterDownCondition(StoppingCondition):
    """The tester's model failed `after` times in a row."""

    name = "tester_down"

    def __init__(self, after: int = 3) -> None:
        self.after = after

    def check(self, state: TestState) -> Stop | None:
        """Stop when its last answers were all failures, or when no further answer can come."""
        if len(state.tester_failures) < self.after and not state.tester_gone:
            return None
        failure = state.tester_failures[-1]
        return self._stop(TestStatus.ERROR, f"the tester's model failed: {failure.message}", "tester")


class TesterLeftCondition(StoppingCondition):
    """The person whom the tester plays has left."""

    name = "tester_left"

    def check(self, state: TestState) -> Stop | None:
        """Stop when the tester ended the conversation."""
        if state.left is None:
            return None
        blame = None if state.turns else "tester"
        return self._stop(TestStatus.FAILURE, f"the tester ended the conversation: {_short(state.left)}", blame)


class MaxTurnsCondition(StoppingCondition):
    """The test has had all its turns."""

    name = "max_turns"

    def check(self, state: TestState) -> Stop | None:
        """Stop when no turn is left."""
        most = state.context.max_turns
        if len(state.turns) < most:
            return None
        return self._stop(TestStatus.MAX_TURNS, f"the limit of {most} turn{'s' * (most != 1)} is reached")


class StepBudgetCondition(StoppingCondition):
    """The tester took all the steps of a turn without saying anything to the target."""

    name = "step_budget"

    def __init__(self, steps: int = 10) -> None:
        self.steps = steps

    def check(self, state: TestState) -> Stop | None:
        """Stop when no step is left."""
        if len(state.steps) < self.steps:
            return None
        refused = sum(step.refused for step in state.steps)
        reason = f"the tester took {self.steps} steps without a message to the target ({refused} of them refused)"
        return self._stop(TestStatus.ERROR, reason, "tester")


class TimeoutCondition(StoppingCondition):
    """The test has taken `seconds`; a hanging target or model is interrupted."""

    name = "timeout"

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def check(self, state: TestState) -> Stop | None:
        """Stop when the time is over."""
        if self.seconds is None or state.seconds < self.seconds:
            return None
        return self._stop(TestStatus.TIMEOUT, f"the limit of {self.seconds:g} s is reached")


class CostCondition(StoppingCondition):
    """Tester, judge and target have cost `dollars`; what costs an unknown amount is not counted."""

    name = "cost"

    def __init__(self, dollars: float | None) -> None:
        self.dollars = dollars

    def check(self, state: TestState) -> Stop | None:
        """Stop when the money is spent."""
        if self.dollars is None:
            return None
        spent = sum(usage.cost or 0.0 for usage in state.usage.values())
        if spent < self.dollars:
            return None
        return self._stop(TestStatus.ABORTED, f"${spent:.4g} of ${self.dollars:.4g} is spent")


class RepetitionCondition(StoppingCondition):
    """The tester, or the target, said the same thing `times` times in a row."""

    name = "repetition"

    def __init__(self, times: int = 5) -> None:
        self.times = times

    def check(self, state: TestState) -> Stop | None:
        """Stop when one side repeats itself; the tester is checked first, as it may be the cause."""
        last = state.turns[-self.times :]
        if len(last) < self.times:
            return None
        if _same([turn.message for turn in last]):
            reason = f"the tester said the same {self.times} times: {_short(last[-1].message)}"
            return self._stop(TestStatus.FAILURE, reason, "tester")
        if all(turn.answered for turn in last) and _same([turn.reply for turn in last]):
            reason = f"the target answered the same {self.times} times: {_short(last[-1].reply)}"
            return self._stop(TestStatus.FAILURE, reason, "target")
        return None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one test may use; None for no limit. `steps` are those of one turn.

    `impossible_after` is how many judgements in a row must see no progress before the goal counts as impossible.
    """

    steps: int = 10
    impossible_after: int = 8
    seconds: float | None = None
    dollars: float | None = None

    def less(self, seconds: float, dollars: float) -> Limits:
        """Return the remaining limits after some time and money is used."""
        time = None if self.seconds is None else max(0.0, self.seconds - seconds)
        money = None if self.dollars is None else max(0.0, self.dollars - dollars)
        return replace(self, seconds=time, dollars=money)


def conditions(limits: Limits, user_defined: Sequence[StoppingCondition] = ()) -> tuple[StoppingCondition, ...]:
    """Return the conditions in their order; a user-defined one replaces that of its name, or comes at the end."""
    built_in: list[StoppingCondition] = [
        GoalAchievedCondition(),
        GuardCondition(),
        GoalImpossibleCondition(limits.impossible_after),
        TargetDownCondition(),
        TesterDownCondition(),
        TesterLeftCondition(),
        MaxTurnsCondition(),
        StepBudgetCondition(limits.steps),
        TimeoutCondition(limits.seconds),
        CostCondition(limits.dollars),
        RepetitionCondition(),
    ]
    own_by_name = {condition.name: condition for condition in user_defined}
    names = {condition.name for condition in built_in}
    return (
        *(own_by_name.get(condition.name, condition) for condition in built_in),
        *(condition for condition in user_defined if condition.name not in names),
    )


def first_stop(conditions: tuple[StoppingCondition, ...], state: TestState) -> Stop | None:
    """Return the stop of the first condition that holds, None when the test goes on.

    Raises:
        TestingFault: a condition broke.
    """
    for condition in conditions:
        try:
            with foreign_code():
                stop = condition.check(state)
        except Exception as error:
            reason = f"the condition {condition.name} raised {type(error).__name__}: {error}"
            raise TestingFault(reason) from error
        if isinstance(stop, Stop):
            return stop
        if stop is not None:
            raise TestingFault(f"the condition {condition.name} returned a {type(stop).__name__}, not a Stop")
    return None


def _same(texts: list[str]) -> bool:
    return len(set(map(fold, texts))) == 1


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), 200) or ""
