"""Checking a suite without running it: every file, name, option and row, and what a run would call."""

from __future__ import annotations

from dataclasses import dataclass

from vivavoce.errors import Problem, UsageError
from vivavoce.grading.grader import Grader
from vivavoce.pacing.budget import Budget
from vivavoce.plugins import load_object
from vivavoce.run.plan import Plan, RunOptions, plan_of
from vivavoce.samples.sample import Sample
from vivavoce.suites.build import Builder, Grading
from vivavoce.suites.dataset import check_dataset
from vivavoce.suites.hooks import check_setup
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import JudgeGraderSpec
from vivavoce.suites.targets import build_targets


@dataclass(frozen=True, slots=True)
class Checked:
    """A suite that can be run; `plan` says in words what a run would call, `notes` what to know before."""

    suite: Suite
    plan: str
    notes: tuple[str, ...]


def check_suite(suite: Suite, options: RunOptions | None = None) -> Checked:
    """Check everything that can be checked without calling anybody.

    Raises:
        UsageError: with every problem found.
    """
    problems = list(suite.problems)
    plan = plan_of(suite, options or RunOptions())
    grading = _graded(suite, problems)
    _collect(problems, lambda: _targets(suite, plan))
    _collect(problems, lambda: check_dataset(suite, plan.tags))
    if problems or grading is None:
        raise UsageError(*dict.fromkeys(problems))
    return Checked(suite, _describe(suite, plan, grading), suite.notes)


def _graded(suite: Suite, problems: list[Problem]) -> Grading | None:
    try:
        return Builder(suite, JudgeOpener(Budget(), api_key="checked").open).grading()
    except UsageError as error:
        problems += error.problems
        return None


def _collect(problems: list[Problem], step: object) -> None:
    try:
        step()  # pyright: ignore
    except UsageError as error:
        problems += error.problems


def _targets(suite: Suite, plan: Plan) -> None:
    if suite.spec.setup_script is not None:
        try:
            check_setup(load_object(suite.spec.setup_script, suite.base), suite.spec.setup_script)
        except UsageError as error:
            raise UsageError(
                *(p if p.file else suite.document.problem(("setup_script",), p.message) for p in error.problems)
            ) from error
    build_targets(suite, plan.concurrency, keys_needed=False)


def _describe(suite: Suite, plan: Plan, grading: Grading) -> str:
    samples = turns = verdicts = 0
    judges = [g for g in grading.graders if isinstance(suite.spec.graders[g.name], JudgeGraderSpec)]
    for sample in plan.samples():
        samples += 1
        turns += sample.turn_count
        verdicts += sum(_verdicts(grader, sample) for grader in judges)
    if plan.replays:
        return f"{samples} recorded conversations, {turns} turns; no target is called; {verdicts} calls of judges"
    targets = max(1, len(getattr(suite.spec.target, "model_handles", []) or [1]))
    times = targets * plan.trials
    return (
        f"{samples} samples × {targets} target{'s' * (targets > 1)} × {plan.trials} trial{'s' * (plan.trials > 1)} = "
        f"{samples * times} conversations; {turns * times} calls of the target, {verdicts * times} of judges, "
        f"{plan.concurrency} at a time"
    )


def _verdicts(grader: Grader, sample: Sample) -> int:
    return sample.turn_count if grader.per_turn(sample) else 1
