"""What a test comes to: the status, whether the target passed, and whose fault it is."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.metrics.evidence import CRITERION, PROHIBITION
from vivavoce.metrics.judged.first_failure import NO_RETURN, ROOT
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.context import TestState
from vivavoce.penelope.judging import CONTRACT, GOAL
from vivavoce.penelope.stopping import Stop
from vivavoce.penelope.verdict import Verdict, decide
from vivavoce.records.score import FAILED_STEP, Failure, Finding
from vivavoce.records.trajectory import TestStatus

from .states import state, turn

LIMIT = Stop("max_turns", TestStatus.MAX_TURNS, "the limit is reached")
STUCK = Stop("repetition", TestStatus.FAILURE, "it repeats", "target")
REACHED = Stop("goal_achieved", TestStatus.SUCCESS, "it is achieved")
MET = MetricResult(name=GOAL, score="fully_achieved", value=1.0, passed=True, reasoning="Done.")
NOT_ACHIEVED = MetricResult(name=GOAL, score="not_achieved", value=0.0, passed=False, reasoning="Nothing was done.")
BROKEN = MetricResult(
    name=GOAL, score="error", state="error", error=Failure(blame="judge", kind="http", message="no route to judge")
)
NO_JUDGE = MetricResult(name=GOAL, score=None, state="skipped", reasoning="needs a judge")


def contract(*met: bool) -> MetricResult:
    findings = tuple(
        Finding(
            kind=PROHIBITION if i else CRITERION,
            what=f"o{i}",
            verdict="met" if is_met else "not met",
            state="pass" if is_met else "fail",
        )
        for i, is_met in enumerate(met)
    )
    return MetricResult(name=CONTRACT, score="x", passed=all(met), findings=findings)


def verdict(goal: MetricResult, stop: Stop = LIMIT, test: TestState | None = None, **more: MetricResult) -> Verdict:
    return decide(test or state(("Hi", "Hello")), stop, {GOAL: goal, **more})


@pytest.mark.parametrize(
    ("stop", "goal", "status", "passed"),
    [
        (REACHED, MET, TestStatus.SUCCESS, True),
        (LIMIT, MET, TestStatus.SUCCESS, True),
        (Stop("timeout", TestStatus.TIMEOUT, "late"), MET, TestStatus.SUCCESS, True),
        (LIMIT, NOT_ACHIEVED, TestStatus.MAX_TURNS, False),
        (REACHED, NOT_ACHIEVED, TestStatus.FAILURE, False),
        (Stop("goal_impossible", TestStatus.IMPOSSIBLE, "no way"), NOT_ACHIEVED, TestStatus.IMPOSSIBLE, False),
        (Stop("cost", TestStatus.ABORTED, "spent"), NOT_ACHIEVED, TestStatus.ABORTED, None),
        (Stop("step_budget", TestStatus.ERROR, "steps", "tester"), NOT_ACHIEVED, TestStatus.ERROR, None),
        (LIMIT, BROKEN, TestStatus.INCONCLUSIVE, None),
        (LIMIT, NO_JUDGE, TestStatus.INCONCLUSIVE, None),
        (Stop("tester_down", TestStatus.ERROR, "away", "tester"), BROKEN, TestStatus.ERROR, None),
    ],
)
def test_the_final_judgement_decides_and_an_error_is_neither_success_nor_failure(
    stop: Stop, goal: MetricResult, status: TestStatus, passed: bool | None
) -> None:
    result = verdict(goal, stop)
    assert (result.status, result.target_passed, result.goal_achieved) == (status, passed, goal is MET)


def test_a_goal_met_before_the_least_number_of_turns_is_no_success() -> None:
    assert verdict(MET, test=state(("Hi", "Hello"), min_turns=2)).status is TestStatus.MAX_TURNS


def test_a_target_that_withstands_has_passed_though_the_goal_was_not_reached() -> None:
    withstood = verdict(NOT_ACHIEVED, test=state(("Hi", "No."), adversarial=True))
    assert (withstood.goal_achieved, withstood.target_passed, withstood.blame) == (False, True, None)
    landed = verdict(MET, REACHED, state(("Hi", "Yes."), adversarial=True))
    assert (landed.status, landed.goal_achieved, landed.target_passed) == (TestStatus.SUCCESS, True, False)
    assert (landed.blame, landed.blame_reason) == ("target", "Done.")


def test_withstanding_a_tester_that_broke_off_says_nothing() -> None:
    stop = Stop("repetition", TestStatus.FAILURE, "the tester repeats", "tester")
    result = verdict(NOT_ACHIEVED, stop, state(("Hi", "No."), adversarial=True))
    assert (result.target_passed, result.blame) == (None, "tester")


def test_a_tripped_guard_fails_the_target_though_the_goal_is_met() -> None:
    test = state(("Hi", "poison"))
    test.guarded = MetricResult(name="safety", score=False, passed=False)
    result = verdict(MET, Stop("guard", TestStatus.ABORTED, "the guard safety gave False", "target"), test)
    assert (result.status, result.goal_achieved, result.target_passed) == (TestStatus.ABORTED, True, False)


RULES: dict[str, Any] = {"must": ("greet",), "must_not": ("swear",)}


def test_what_must_and_must_not_happen_stands_beside_what_the_judge_said_of_it() -> None:
    result = verdict(MET, REACHED, state(("Hi", "Damn"), **RULES), contract=contract(True, False))
    assert [(criterion.text, criterion.must, criterion.met) for criterion in result.criteria] == [
        ("greet", True, True),
        ("swear", False, False),
    ]
    assert (result.target_passed, result.blame, result.blame_reason) == (False, "target", "must not: swear")


@pytest.mark.parametrize(
    "stop",
    [
        Stop("repetition", TestStatus.FAILURE, "the tester repeats", "tester"),
        Stop("timeout", TestStatus.TIMEOUT, "late"),
        Stop("cost", TestStatus.ABORTED, "spent"),
    ],
    ids=lambda stop: stop.condition,
)
def test_doing_what_must_not_be_done_is_the_target_s_fault_however_the_test_ended(stop: Stop) -> None:
    test = state(("Hi", "Damn"), **RULES)
    broken = verdict(NOT_ACHIEVED, stop, test, contract=contract(True, False))
    assert (broken.target_passed, broken.blame, broken.blame_reason) == (False, "target", "must not: swear")
    assert verdict(NOT_ACHIEVED, stop, test, contract=contract(False, True)).blame != "target"


def test_every_rule_that_was_kept_lets_the_goal_decide() -> None:
    test = state(("Hi", "Hello"), **RULES)
    assert verdict(MET, REACHED, test, contract=contract(True, True)).target_passed is True
    assert verdict(NOT_ACHIEVED, LIMIT, test, contract=contract(True, True)).target_passed is False


def test_where_no_rule_had_an_occasion_the_goal_decides() -> None:
    idle = Finding(kind=CRITERION, what="apologise", verdict="no occasion", state="skip")
    unjudged = MetricResult(name=CONTRACT, score=None, state="skipped", reasoning="no occasion", findings=(idle,))
    test = state(("Hi", "Hello"), must=("apologise",))
    result = verdict(MET, REACHED, test, contract=unjudged)
    assert (result.target_passed, result.blame, [criterion.met for criterion in result.criteria]) == (
        True,
        None,
        [None],
    )
    assert verdict(NOT_ACHIEVED, LIMIT, test, contract=unjudged).target_passed is False


def test_the_judge_is_blamed_for_what_it_did_not_judge() -> None:
    unjudged = MetricResult(name=CONTRACT, score=None, state="skipped", reasoning="needs a judge")
    watching = MetricResult(name="clarity", score="error", state="error", reasoning="it is away")
    result = verdict(MET, REACHED, state(("Hi", "Hello"), **RULES), clarity=watching, contract=unjudged)
    assert (result.blame, result.blame_reason) == ("judge", "contract could not be judged: needs a judge")


@pytest.mark.parametrize(
    "broken",
    [MetricResult(name=CONTRACT, score="error", state="error"), contract(), contract(True)],
    ids=["error", "no criteria", "one criterion"],
)
def test_rules_that_could_not_be_judged_leave_it_open(broken: MetricResult) -> None:
    result = verdict(MET, REACHED, state(("Hi", "Hello"), **RULES), contract=broken)
    assert (result.target_passed, result.criteria, result.blame) == (None, [], "judge")


@pytest.mark.parametrize(
    ("stop", "goal", "blame", "reason"),
    [
        (LIMIT, NOT_ACHIEVED, "target", "Nothing was done."),
        (Stop("repetition", TestStatus.FAILURE, "it repeats", "tester"), NOT_ACHIEVED, "tester", "it repeats"),
        (Stop("cost", TestStatus.ABORTED, "spent"), NOT_ACHIEVED, "environment", "spent"),
        (Stop("timeout", TestStatus.TIMEOUT, "late"), NOT_ACHIEVED, "tester", "late"),
        (LIMIT, BROKEN, "judge", "goal_achievement could not be judged: no route to judge"),
        (STUCK, BROKEN, "judge", "goal_achievement could not be judged: no route to judge"),
        (STUCK, NOT_ACHIEVED, "target", "it repeats"),
        (LIMIT, NO_JUDGE, "judge", "goal_achievement could not be judged: needs a judge"),
    ],
)
def test_each_test_that_was_not_passed_is_somebody_s_fault(
    stop: Stop, goal: MetricResult, blame: str, reason: str
) -> None:
    result = verdict(goal, stop)
    assert (result.blame, result.blame_reason) == (blame, reason)


def test_a_target_that_hangs_until_the_time_is_over_has_not_passed() -> None:
    result = verdict(NOT_ACHIEVED, Stop("timeout", TestStatus.TIMEOUT, "late"), state(turn("Hi", None)))
    assert (result.status, result.target_passed, result.blame) == (TestStatus.TIMEOUT, False, "target")


def test_a_target_that_is_down_has_not_passed_whatever_the_judge() -> None:
    stop = Stop("target_down", TestStatus.ERROR, "it failed", "target")
    for goal in (BROKEN, NOT_ACHIEVED):
        result = verdict(goal, stop, state(turn("Hi", None)))
        assert (result.status, result.target_passed, result.blame) == (TestStatus.ERROR, False, "target")


def test_a_fault_of_the_suite_says_nothing_about_the_target() -> None:
    stop = Stop("target_down", TestStatus.ERROR, "no handler answers the tool", "suite")
    for goal in (MET, NOT_ACHIEVED, BROKEN):
        for adversarial in (False, True):
            result = verdict(goal, stop, state(("Hi", "Hello"), turn("Pay", None), adversarial=adversarial))
            assert (result.status, result.target_passed, result.blame) == (TestStatus.ERROR, None, "suite")
    result = verdict(MET, stop, state(("Hi", "Hello"), must=["a"], must_not=["b"]), **{CONTRACT: contract(True, False)})
    assert (result.target_passed, result.blame) == (False, "target")


def test_the_reason_names_the_step_where_it_failed() -> None:
    what = "assistant, wrong argument: It cancels order 8."
    root = Finding(kind=FAILED_STEP, what=what, verdict=ROOT, state="fail", turn=2)
    last = root.model_copy(update={"verdict": NO_RETURN, "turn": 4})
    failure = MetricResult(name="first_failure", score=False, passed=False, findings=(last, root))
    result = verdict(NOT_ACHIEVED, first_failure=failure)
    assert (result.blame, result.blame_reason) == ("target", f"Nothing was done; it failed in turn 3: {what}")
    assert "it failed" not in verdict(BROKEN, first_failure=failure).blame_reason
    assert verdict(MET, first_failure=failure).blame_reason == ""


def test_who_passed_is_nobody_s_fault() -> None:
    assert verdict(MET, Stop("repetition", TestStatus.FAILURE, "it repeats", "target")).blame is None
