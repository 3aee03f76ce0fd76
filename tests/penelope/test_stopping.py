"""Why a test stops: each condition alone, all of them in pairs, and conditions of one's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from vivavoce.errors import Blame, TestingFault
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.context import GoalProgress, TestState
from vivavoce.penelope.stopping import (
    GoalAchievedCondition,
    GoalImpossibleCondition,
    Limits,
    RepetitionCondition,
    Stop,
    StoppingCondition,
    conditions,
    first_stop,
)
from vivavoce.penelope.turn import Step
from vivavoce.records.score import Failure, Usage
from vivavoce.records.trajectory import TestStatus

from .states import DOWN, state, turn

LIMITS = Limits(steps=2, impossible_after=5, seconds=60.0, dollars=1.0)
REFUSED = Step(assistant_message=turn("x").assistant_message, tool_message=turn("x").tool_message, refused=True)
BROKEN = Failure(blame="tester", kind="http", message="the model is away")


def progress(
    value: float = 0.0, confidence: float = 0.9, *, achieved: bool = False, broken: bool = False
) -> GoalProgress:
    return GoalProgress(
        goal_achieved=achieved,
        confidence=confidence,
        value=None if broken else value,
        inconclusive=broken,
        reasoning="so",
    )


def fresh() -> TestState:
    """A test after five turns of ten in which nothing happened that would end it."""
    return state(*((f"question {n}", f"answer {n}") for n in range(5)), max_turns=10)


def _achieve(test: TestState) -> None:
    test.progress.append(progress(1.0, achieved=True))


def _object(test: TestState) -> None:
    test.guarded = MetricResult(name="safety", score=False, passed=False, reasoning="It told how.")


def _stand_still(test: TestState) -> None:
    test.progress = [progress()] * 5


def _take_down(test: TestState) -> None:
    test.turns[-3:] = [turn(f"question {n}", None, number=n) for n in (3, 4, 5)]


def _lose_the_model(test: TestState) -> None:
    test.tester_failures = [BROKEN] * 3


def _leave(test: TestState) -> None:
    test.left = "fed up"


def _use_the_turns(test: TestState) -> None:
    test.context = test.context.model_copy(update={"max_turns": 5})


def _use_the_steps(test: TestState) -> None:
    test.steps = [REFUSED] * 2


def _use_the_time(test: TestState) -> None:
    test.began -= 61


def _use_the_money(test: TestState) -> None:
    test.spend("judge", Usage(calls=1, cost=1.0))


def _repeat(test: TestState) -> None:
    test.turns = [turn("same", f"answer {n}", number=n) for n in range(5)]


CAUSES: dict[str, tuple[Callable[[TestState], None], TestStatus, Blame | None, str]] = {
    "goal_achieved": (_achieve, TestStatus.SUCCESS, None, "the goal is achieved: so"),
    "guard": (_object, TestStatus.ABORTED, "target", "the guard safety gave False: It told how."),
    "goal_impossible": (
        _stand_still,
        TestStatus.IMPOSSIBLE,
        None,
        "nothing of the goal was reached in 5 judgements: so",
    ),
    "target_down": (_take_down, TestStatus.ERROR, "target", f"the target failed 3 times in a row: {DOWN.message}"),
    "tester_down": (_lose_the_model, TestStatus.ERROR, "tester", "the tester's model failed: the model is away"),
    "tester_left": (_leave, TestStatus.FAILURE, None, "the tester ended the conversation: fed up"),
    "max_turns": (_use_the_turns, TestStatus.MAX_TURNS, None, "the limit of 5 turns is reached"),
    "step_budget": (
        _use_the_steps,
        TestStatus.ERROR,
        "tester",
        "the tester took 2 steps without a message to the target (2 of them refused)",
    ),
    "timeout": (_use_the_time, TestStatus.TIMEOUT, None, "the limit of 60 s is reached"),
    "cost": (_use_the_money, TestStatus.ABORTED, None, "$1 of $1 is spent"),
    "repetition": (_repeat, TestStatus.FAILURE, "tester", "the tester said the same 5 times: same"),
}
"""The conditions in their order: what makes each hold, and what it says then."""


def stop(test: TestState, *own: StoppingCondition, limits: Limits = LIMITS) -> Stop | None:
    return first_stop(conditions(limits, own), test)


def test_the_order_is_the_documented_one() -> None:
    assert [condition.name for condition in conditions(LIMITS)] == list(CAUSES)


def test_a_test_goes_on_while_nothing_happens() -> None:
    assert stop(fresh()) is None


@pytest.mark.parametrize("name", CAUSES)
def test_each_condition_stops_a_test_and_says_why(name: str) -> None:
    cause, status, blame, reason = CAUSES[name]
    test = fresh()
    cause(test)
    assert stop(test) == Stop(name, status, reason, blame)
    (condition,) = [condition for condition in conditions(LIMITS) if condition.name == name]
    assert condition.should_stop(test)


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(CAUSES, 2)))
def test_of_two_reasons_the_earlier_one_decides(first: str, second: str) -> None:
    test = fresh()
    CAUSES[second][0](test)
    CAUSES[first][0](test)
    assert (result := stop(test)) is not None
    assert result.condition == first


def test_without_limits_neither_time_nor_money_ends_a_test() -> None:
    test = fresh()
    _use_the_time(test)
    _use_the_money(test)
    assert stop(test, limits=Limits()) is None


def test_before_the_least_number_of_turns_no_judgement_ends_a_test() -> None:
    test = state(*((f"q{n}", f"a{n}") for n in range(5)), min_turns=6)
    test.progress = [progress()] * 4 + [progress(1.0, achieved=True)]
    assert stop(test) is None


def test_a_judgement_made_elsewhere_may_be_given() -> None:
    condition = GoalAchievedCondition()
    assert not condition.should_stop(fresh())
    condition.update_progress(progress(1.0, achieved=True))
    assert condition.should_stop(fresh())


@pytest.mark.parametrize(
    "judgements",
    [
        [progress()] * 4,
        [*[progress()] * 4, progress(broken=True)],
        [*[progress()] * 4, progress(confidence=0.8)],
        [*[progress()] * 4, progress(0.2)],
        [*[progress()] * 4, progress(0.3)],
        [progress(0.5)] * 5,
    ],
    ids=["too few", "one failed", "one unsure", "one better", "one above the bottom", "all above the bottom"],
)
def test_a_goal_is_impossible_only_without_any_doubt(judgements: list[GoalProgress]) -> None:
    test = fresh()
    test.progress = judgements
    assert GoalImpossibleCondition(5).check(test) is None


def test_a_target_that_fails_in_every_turn_there_is_is_down() -> None:
    test = state(turn("Hi", None), max_turns=1)
    assert (result := stop(test)) is not None
    assert (result.condition, result.reason) == ("target_down", f"the target failed and never answered: {DOWN.message}")


def test_a_fault_of_the_suite_ends_a_test_at_once() -> None:
    fault = Failure(blame="suite", kind="unanswered", message="no handler answers the tool")
    last = turn("Pay", None, number=2)
    last = last.model_copy(update={"exchange": last.exchange.model_copy(update={"failure": fault})})
    result = stop(state(turn("Hi", "Hello"), last, max_turns=10))
    assert result == Stop("target_down", TestStatus.ERROR, "no handler answers the tool", "suite")


def test_a_target_that_alternates_is_not_down() -> None:
    turns = [turn(f"q{n}", None if n % 2 else f"a{n}", number=n) for n in range(1, 6)]
    assert stop(state(*turns, max_turns=10)) is None


def test_one_failure_of_the_model_is_enough_where_none_can_be_better() -> None:
    test = fresh()
    test.tester_failures, test.tester_gone = [BROKEN], True
    assert (result := stop(test)) is not None
    assert result.condition == "tester_down"


def test_a_target_that_says_the_same_again_and_again_goes_round_in_circles() -> None:
    test = state(*((f"q{n}", " I  CANNOT help" if n % 2 else "i cannot help") for n in range(5)))
    assert (result := RepetitionCondition().check(test)) is not None
    assert (result.blame, result.reason) == ("target", "the target answered the same 5 times: i cannot help")
    assert RepetitionCondition(6).check(test) is None


class Rude(StoppingCondition):
    name = "rude"

    def check(self, state: TestState) -> Stop | None:
        return self._stop(TestStatus.FAILURE, "rude") if "idiot" in state.last_reply else None


class Patient(StoppingCondition):
    name = "max_turns"

    def check(self, state: TestState) -> Stop | None:
        return None


class Broken(StoppingCondition):
    name = "broken"

    def check(self, state: TestState) -> Stop | None:
        raise ZeroDivisionError("oops")


def test_a_condition_of_one_s_own_comes_last() -> None:
    test = state(("Hi", "You idiot"))
    assert stop(test, Rude()) == Stop("rude", TestStatus.FAILURE, "rude")
    _leave(test)
    assert (result := stop(test, Rude())) is not None
    assert result.condition == "tester_left"


def test_a_condition_of_the_same_name_takes_the_place_of_a_built_in_one() -> None:
    test = state(("Hi", "Hello"), max_turns=1)
    assert stop(test, Patient()) is None
    assert [condition.name for condition in conditions(LIMITS, [Patient()])] == list(CAUSES)


def test_a_condition_that_breaks_is_named() -> None:
    with pytest.raises(TestingFault, match="the condition broken raised ZeroDivisionError: oops"):
        stop(fresh(), Broken())


class EnoughSaidCondition(StoppingCondition):
    def should_stop(self, state: TestState) -> bool:
        return len(state.turns) >= 2


class Talkative(StoppingCondition):
    def should_stop(self, state: TestState) -> bool:
        return (False, "not yet")  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


class Idle(StoppingCondition):
    pass


def test_a_condition_may_say_yes_or_no_and_is_called_as_its_class() -> None:
    assert stop(state(("Hi", "Hello")), EnoughSaidCondition()) is None
    result = stop(state(("Hi", "Hello"), ("And?", "Well.")), EnoughSaidCondition())
    assert result == Stop("enough_said", TestStatus.FAILURE, "the condition enough_said holds")


@pytest.mark.parametrize(
    ("condition", "answer_text"),
    [
        (Talkative(), r"talkative raised TypeError: should_stop returned a tuple, not a bool; to give a reason"),
        (Idle(), r"idle raised TypeError: Idle needs a method check\(state\), or should_stop\(state\)"),
    ],
)
def test_a_condition_that_says_neither_is_named(condition: StoppingCondition, answer_text: str) -> None:
    with pytest.raises(TestingFault, match=answer_text):
        stop(fresh(), condition)
