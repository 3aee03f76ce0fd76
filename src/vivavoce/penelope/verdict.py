"""The outcome of a test: its status, whether the target passed, and who is to blame if not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from vivavoce.errors import Blame
from vivavoce.metrics.judged.first_failure import root_of
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.context import TestState
from vivavoce.penelope.judging import CONTRACT, GOAL
from vivavoce.penelope.stopping import Stop
from vivavoce.records.score import turn_label
from vivavoce.records.trajectory import Criterion, TestStatus, meets_goal


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a test; `target_passed` is None where that cannot be decided."""

    status: TestStatus
    goal_achieved: bool
    target_passed: bool | None
    criteria: list[Criterion]
    blame: Blame | None = None
    blame_reason: str = ""


def decide(
    state: TestState, stop: Stop, evaluation: Mapping[str, MetricResult], guards: Collection[str] = ()
) -> Verdict:
    """Return the verdict on a test that stopped, from the final evaluation; `guards` are names of metrics in it.

    Where a guard could not be measured, it is unknown whether the target passed.
    """
    goal = evaluation[GOAL]
    achieved = goal.state == "scored" and goal.passed is True
    status = _status(state, stop, goal, achieved)
    criteria = list(_criteria(state, evaluation.get(CONTRACT)))
    forbidden = any(criterion.met is False and not criterion.must for criterion in criteria)
    if (stop.condition, stop.blame) == ("target_down", "suite") and not forbidden:
        return Verdict(stop.status, achieved, None, criteria, "suite", stop.reason)
    verdicts = [_goal_verdict(state, stop, goal), *(_guard_verdict(evaluation[name]) for name in guards)]
    if CONTRACT in evaluation:
        verdicts.append(_contract_verdict(criteria))
    passed = False if state.guarded is not None or False in verdicts else None if None in verdicts else True
    if passed is True:
        return Verdict(status, achieved, passed, criteria)
    deciding = {name: evaluation[name] for name in (GOAL, CONTRACT, *guards) if name in evaluation}
    blame, why = _blame(state, stop, deciding, criteria, passed)
    if blame == "tester":
        return Verdict(status, achieved, None, criteria, blame, why)
    if passed is False and (root := root_of(evaluation.values())):
        why = f"{why.rstrip('.')}; it failed in {turn_label(root.turn)}: {root.what}"
    return Verdict(status, achieved, passed, criteria, blame, why)


def _status(state: TestState, stop: Stop, goal: MetricResult, achieved: bool) -> TestStatus:
    if stop.status in (TestStatus.ABORTED, TestStatus.ERROR) and stop.condition == "guard":
        return stop.status
    if achieved:
        return TestStatus.SUCCESS if len(state.turns) >= state.context.min_turns else stop.status
    if goal.state == "scored" or stop.status in (TestStatus.ERROR, TestStatus.ABORTED):
        return TestStatus.FAILURE if stop.status is TestStatus.SUCCESS else stop.status
    if state.turns and not any(turn.answered for turn in state.turns):
        return stop.status
    if not state.turns and stop.status is TestStatus.TIMEOUT:
        return stop.status
    return TestStatus.INCONCLUSIVE


def _criteria(state: TestState, contract: MetricResult | None) -> Iterator[Criterion]:
    """Yield what the target must and must not do, as the contract was judged; nothing where it could not be."""
    if contract is None or contract.state == "error":
        return
    rules = [(text, True) for text in state.context.must] + [(text, False) for text in state.context.must_not]
    if len(contract.findings) != len(rules):
        return
    for (text, must), finding in zip(rules, contract.findings, strict=True):
        met = None if finding.state == "skip" else finding.state == "pass"
        yield Criterion(text=text, must=must, met=met, evidence=finding.evidence)


def _contract_verdict(criteria: Collection[Criterion]) -> bool | None:
    """Say whether no rule was broken, None where they could not be judged; one without an occasion never is."""
    return all(criterion.met is not False for criterion in criteria) if criteria else None


def _guard_verdict(result: MetricResult) -> bool | None:
    return None if result.state == "error" else result.passed is not False


def _goal_verdict(state: TestState, stop: Stop, goal: MetricResult) -> bool | None:
    if stop.condition == "target_down":
        return False
    if goal.state != "scored" or not any(turn.answered for turn in state.turns):
        return False if stop.condition == "timeout" and state.turns and not state.turns[-1].answered else None
    if state.context.adversarial:
        met = goal.passed is not None and meets_goal(goal.passed, is_attack=True)
        return None if goal.passed is None or (stop.blame == "tester" and met) else met
    if goal.passed:
        return True
    return None if stop.condition in ("cost", "tester_down", "step_budget", "broken") else False


def _blame(
    state: TestState, stop: Stop, evaluation: Mapping[str, MetricResult], criteria: list[Criterion], passed: bool | None
) -> tuple[Blame, str]:
    goal = evaluation[GOAL]
    broken_rules = [criterion for criterion in criteria if criterion.met is False]
    of_rules = "; ".join(criterion.sentence for criterion in broken_rules)
    if any(not criterion.must for criterion in broken_rules):  # whatever the tester did, and however it ended
        return "target", of_rules
    unjudged = passed is None and goal.state != "scored"
    if stop.blame is not None and goal.passed is not True and not (unjudged and stop.blame == "target"):
        return stop.blame, stop.reason
    if stop.condition == "cost":
        return "environment", stop.reason
    if stop.condition == "timeout" and goal.passed is not True:
        if state.turns and not state.turns[-1].answered:
            return "target", stop.reason
        if goal.state != "error":
            return "tester", stop.reason
    if passed is None:
        unscored = [result for result in evaluation.values() if result.state != "scored"]
        broken = next((result for result in unscored if result.state == "error"), next(iter(unscored), goal))
        reason = broken.error.message if broken.error else broken.reasoning or "it could not be judged"
        return "judge", f"{broken.name or GOAL} could not be judged: {reason}"
    if broken_rules:
        return "target", of_rules
    if (guard := state.guarded) is not None:
        return "target", f"the guard {guard.name} gave {guard.score}: {guard.reasoning or ''}"
    return "target", goal.reasoning or stop.reason
