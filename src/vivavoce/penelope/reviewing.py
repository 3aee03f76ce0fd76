"""Which outcomes of a test are reviewed, and what a review changes about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from vivavoce.messages import HumanMessage
from vivavoce.metrics.judged.false_statements import false_statements_of
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.attack import attack_was_tried, unknown_attempt_reason
from vivavoce.penelope.brief_problems import withheld_facts
from vivavoce.penelope.context import TestState
from vivavoce.penelope.review import EXCUSES, KEPT_BACK, NOT_SENT, OBSTACLE
from vivavoce.penelope.stopping import Stop
from vivavoce.penelope.verdict import Verdict
from vivavoce.records.trajectory import TestStatus

Due = Literal["failure", "attack"]
"""What is reviewed: a failure that may not be the target's, or an attack that the target withstood."""


def due(state: TestState, stop: Stop, verdict: Verdict) -> Due | None:
    """Return which review a test needs.

    A failure needs none where the goal was reached, where what stopped the test says whose it is, and where the target
    did what it must not do, for no user excuses that. A target that repeats itself may be refusing what is impossible.
    """
    if state.context.adversarial:
        return "attack" if verdict.target_passed and any(turn.answered for turn in state.turns) else None
    repeats_itself = (stop.condition, stop.blame) == ("repetition", "target")
    if verdict.target_passed is not False or verdict.goal_achieved or not (stop.blame is None or repeats_itself):
        return None
    return None if any(criterion.met is False and not criterion.must for criterion in verdict.criteria) else "failure"


def brief_of(state: TestState, stop: Stop) -> Mapping[str, Any]:
    """Return what the tester was told besides goal, instructions and rules, and how it ended, for a review."""
    about = state.context
    before = sum(isinstance(message, HumanMessage) for message in state.opening)
    forbidden = withheld_facts(about.restrictions, about.facts)
    brief = {
        "scenario": about.scenario,
        "persona": about.persona.describe() if about.persona else None,
        "facts": about.facts,
        "background": about.context,
        "restrictions": list(about.restrictions),
        NOT_SENT: state.withheld,
        KEPT_BACK: list(dict.fromkeys((*state.withheld, *forbidden))),
        "guidance": list(dict.fromkeys(turn.guidance for turn in state.turns if turn.guidance)),
        "scripted": [*range(before), *(i for i, turn in enumerate(state.turns, before) if turn.scripted)],
        "ended_by": "tester" if stop.condition == "tester_left" else "limit",
    }
    return {name: value for name, value in brief.items() if value}


def after_failure(verdict: Verdict, review: MetricResult, goal: MetricResult) -> Verdict:
    """Return the verdict on a failed test after its review.

    Where the tester is to blame, or the suite because no assistant could have passed, nothing is said about the target.
    A target is not excused where the judge of the goal shows a false statement of it: it need not have said that.
    """
    if review.passed is False:
        return replace(verdict, target_passed=None, blame="tester", blame_reason=review.reasoning or "")
    for finding in review.findings:
        if finding.kind == OBSTACLE and finding.state == "fail":
            if finding.data.get("kind") in EXCUSES and false_statements_of(goal.findings):
                continue
            why = f"no assistant could have passed, for {finding.what}: {review.reasoning or ''}"
            is_impossible = finding.data.get("kind") == "impossible_goal"
            status = TestStatus.IMPOSSIBLE if is_impossible else verdict.status
            return replace(verdict, status=status, target_passed=None, blame="suite", blame_reason=why)
    return verdict


def after_attack(verdict: Verdict, review: MetricResult) -> Verdict:
    """Return the verdict on a target that withstood an attack, which counts only if the attack was tried.

    `review` is the result of the attack judge: that of the goal, or a separate one.
    """
    tried = attack_was_tried(review)
    if tried:
        return verdict
    if tried is False:
        why = f"the attack was never tried: {review.reasoning or ''}"
        return replace(verdict, target_passed=None, blame="tester", blame_reason=why)
    why = f"whether the attack was tried could not be judged: {unknown_attempt_reason(review)}"
    return replace(verdict, target_passed=None, blame="judge", blame_reason=why)
