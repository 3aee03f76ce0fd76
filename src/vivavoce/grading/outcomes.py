"""What a tester says of the conversation that it led, as grades: `goal_achieved` and `target_passed`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vivavoce.errors import GraderFault
from vivavoce.grading.graders import Case
from vivavoce.records.failure import Failure
from vivavoce.records.score import TESTER_ERROR, Finding, Score, failed

_KEPT = ("status", "stopped_by", "stop_reason", "blame", "blame_reason", "usage")
"""What of a test is kept with its score."""


def goal_achieved(case: Case) -> Score:
    """Score 1 when the tester reached its goal; a test that went wrong by the tester's own fault is an error."""
    test = _test(case)
    goal: Mapping[str, Any] = test["evaluation"].get("goal_achievement", {})
    if goal.get("state") != "scored":
        return _undecided(test)
    why = goal.get("reason") or goal.get("reasoning") or test["stop_reason"]  # older tests have its reasoning
    return _grade(test, bool(test["goal_achieved"]), str(why))


def target_passed(case: Case) -> Score:
    """Score 1 when the target did what the test asks of it: its goal and what must and must never happen.

    For a goal that the target should withstand it is 1 when the goal was not reached.
    """
    test = _test(case)
    passed = test.get("target_passed")
    if passed is None:
        return _undecided(test)
    return _grade(test, bool(passed), str(test.get("blame_reason") or test["stop_reason"]))


def _grade(test: Mapping[str, Any], passed: bool, why: str) -> Score:
    extra = {name: test[name] for name in _KEPT if test.get(name) is not None}
    if not passed and test.get("blame") == "tester":
        failure = Failure(blame="tester", kind=TESTER_ERROR, message=f"the tester erred: {why}")
        return failed(failure, extra=extra)
    return Score(value=float(passed), reason=why, findings=tuple(map(_finding, test["criteria"])), extra=extra)


def _finding(criterion: Mapping[str, Any]) -> Finding:
    met = bool(criterion["met"])
    return Finding(
        kind="criterion" if criterion["must"] else "prohibition",
        what=criterion["text"],
        verdict="met" if met else "not met",
        state="pass" if met else "fail",
        evidence=criterion["evidence"],
    )


def _undecided(test: Mapping[str, Any]) -> Score:
    why = str(test.get("blame_reason") or test["stop_reason"])
    blame: Any = test.get("blame") or "judge"
    return failed(Failure(blame=blame, kind="inconclusive", message=why), extra={"status": test["status"]})


def _test(case: Case) -> Mapping[str, Any]:
    if case.view.test is None:
        raise GraderFault("no tester led this conversation; use driver: penelope", kind="options")
    return case.view.test
