"""What a tester says of its conversation, as grades."""

from __future__ import annotations

from typing import Any

import pytest

from kept import kept_test
from vivavoce.errors import GraderFault
from vivavoce.grading.extractors import View
from vivavoce.grading.graders import Case
from vivavoce.grading.outcomes import goal_achieved, target_passed
from vivavoce.records.score import Evidence
from vivavoce.samples.sample import Sample


def case(**test: Any) -> Case:
    told: dict[str, Any] = {
        "status": "success",
        "goal_achieved": True,
        "target_passed": True,
        "stop_reason": "the goal is achieved",
        "stopped_by": "goal_achieved",
        "evaluation": {"goal_achievement": {"value": 1.0, "reason": "Done."}},
        "criteria": [
            {"text": "greet", "must": True, "met": True, "evidence": [{"text": "Hi.", "turn": 0, "verified": True}]},
            {"text": "swear", "must": False, "met": False, "evidence": []},
        ],
        **test,
    }
    return Case(Sample(id="s", goal="g"), "", View([], None, [], kept_test(**told)))


def test_a_goal_that_is_reached_scores_one_with_the_judge_s_reason() -> None:
    grade = goal_achieved(case())
    assert (grade.value, grade.state, grade.reason) == (1.0, "scored", "Done.")
    assert grade.extra == {
        "status": "success",
        "outcome": "success · target passed",
        "stopped_by": "goal_achieved",
        "stop_reason": "the goal is achieved",
        "blame_reason": "",
        "usage": {},
    }
    assert [(finding.kind, finding.what, finding.verdict, finding.state) for finding in grade.findings] == [
        ("criterion", "greet", "kept", "pass"),
        ("prohibition", "swear", "done", "fail"),
    ]
    assert grade.evidence == (Evidence(text="Hi.", turn=0, verified=True),)


def test_whether_the_target_passed_is_another_question() -> None:
    landed = case(target_passed=False, blame="target", blame_reason="It told how.")
    assert (goal_achieved(landed).value, target_passed(landed).value) == (1.0, 0.0)
    assert target_passed(landed).reason == "success · target failed: It told how."
    assert target_passed(case()).reason == "success · target passed: the goal is achieved"


def test_what_nobody_knows_is_an_error_and_says_whose() -> None:
    for evaluation in ({"goal_achievement": {"state": "error"}}, {}):
        unknown = case(evaluation=evaluation, target_passed=None, blame="judge", blame_reason="no route to judge")
        for grade in (goal_achieved(unknown), target_passed(unknown)):
            assert (grade.state, grade.value) == ("error", None)
            assert grade.failure is not None
            assert (grade.failure.blame, grade.failure.kind) == ("judge", "inconclusive")
            assert grade.failure.message == "no route to judge"


def test_a_failure_of_the_tester_s_own_is_an_error_and_no_zero() -> None:
    spoilt = case(goal_achieved=False, target_passed=False, blame="tester", blame_reason="It gave itself away.")
    for grade in (goal_achieved(spoilt), target_passed(spoilt)):
        assert (grade.state, grade.value) == ("error", None)
        assert grade.failure is not None
        assert (grade.failure.blame, grade.failure.kind) == ("tester", "tester_error")
        assert grade.failure.message == "the tester made a mistake: It gave itself away."


def test_what_no_target_could_pass_is_an_error_of_the_suite_and_no_zero() -> None:
    hopeless = case(goal_achieved=False, target_passed=None, blame="suite", blame_reason="The goal is impossible.")
    for grade in (goal_achieved(hopeless), target_passed(hopeless)):
        assert (grade.state, grade.value) == ("error", None)
        assert grade.failure is not None
        assert str(grade.failure) == "suite: The goal is impossible."


def test_a_success_stands_whatever_else_is_said_of_the_tester() -> None:
    assert goal_achieved(case(blame="tester")).value == 1.0


@pytest.mark.parametrize("function", [goal_achieved, target_passed])
def test_without_a_tester_there_is_nothing_to_tell(function: Any) -> None:
    with pytest.raises(GraderFault, match="this conversation has no tester; use driver: penelope"):
        function(Case(Sample(id="s", input="Hi"), "", View([], None, [], None)))
