"""Preparing a suite: every file, name, option and row is checked before anything is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from vivavoce.errors import Problem, UsageError
from vivavoce.pacing.budget import Budget
from vivavoce.plugins import load_object
from vivavoce.run.attempt import Grades
from vivavoce.run.output import check_output
from vivavoce.run.plan import Plan, RunOptions, plan_of
from vivavoce.samples.rows import SampleCount
from vivavoce.suites.build import Builder, Scoring
from vivavoce.suites.dataset import check_dataset
from vivavoce.suites.hooks import check_setup
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite
from vivavoce.suites.spec import LettaTargetSpec, TesterSpec
from vivavoce.suites.targets import build_targets
from vivavoce.suites.testers import build_tester, check_tests

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run would call: `messages` to targets and `verdicts` of judges, retries aside.

    Of conversations that a tester leads they are the most there can be, and it is asked at least once for each message.
    """

    samples: int
    targets: int
    trials: int
    conversations: int
    turns: int
    messages: int
    verdicts: int
    concurrency: int
    led: bool = False


def prepare(suite: Suite, plan: Plan, judges: JudgeOpener, tester: str = "") -> tuple[Scoring, SampleCount]:
    """Return what grades a run, and what its dataset holds; `tester` is the fingerprint of who leads, if anybody does.

    Raises:
        UsageError: with every problem found in the suite, in its files and in its dataset.
    """
    problems = list(suite.problems)
    found = _collect(problems, lambda: check_dataset(suite, plan.tags))
    _collect(problems, lambda: _check_setup(suite))
    scoring = _collect(problems, lambda: Builder(suite, judges.open, found, tester).scoring())
    if problems or scoring is None or found is None:
        raise UsageError(*dict.fromkeys(problems))
    return scoring, found


def check_suite(suite: Suite, options: RunOptions | None = None, *, keys_needed: bool = False) -> Forecast:
    """Check everything that can be checked without calling anybody, and say what a run would call.

    With `keys_needed`, a key that the environment lacks is a problem too.

    Raises:
        UsageError: with every problem found.
    """
    plan = plan_of(suite, options or RunOptions())
    problems: list[Problem] = []
    _collect(problems, lambda: build_targets(suite, plan.concurrency, keys_needed=keys_needed))
    replays = options is not None and options.replay
    _collect(problems, lambda: check_output(suite))
    budget = Budget(max_cost=options.max_cost if options and not replays else None)
    judges = JudgeOpener(budget, keys_needed=keys_needed and not replays)
    agent = _collect(problems, lambda: build_tester(suite, judges))
    prepared = _collect(problems, lambda: prepare(suite, plan, judges))
    if agent is not None and prepared is not None:
        _collect(problems, lambda: check_tests(suite, agent))
    if prepared is None or problems:
        raise UsageError(*sorted(problems, key=lambda problem: (str(problem.file), problem.line or 0)))
    return _forecast(suite, plan, prepared[0])


def _collect(problems: list[Problem], step: Callable[[], T]) -> T | None:
    try:
        return step()
    except UsageError as error:
        problems += error.problems
        return None


def _check_setup(suite: Suite) -> None:
    reference = suite.spec.setup_script
    if reference is None:
        return
    try:
        has_client = isinstance(suite.spec.target, LettaTargetSpec)
        check_setup(load_object(reference, suite.base), reference, has_client=has_client)
    except UsageError as error:
        raise UsageError(*suite.document.placed(("setup_script",), error)) from error


def _forecast(suite: Suite, plan: Plan, scoring: Scoring) -> Forecast:
    samples = turns = verdicts = 0
    grades = Grades(scoring.graders)
    tester = (suite.spec.tester or TesterSpec()) if suite.spec.driver == "penelope" else None
    for sample in plan.samples():
        samples += 1
        most = sample.turn_count if tester is None else sample.max_turns or tester.max_turns
        turns += most
        verdicts += grades.verdicts(sample) + (0 if tester is None else -(-most // tester.evaluate_every))
    targets = 0 if plan.replays else len(getattr(suite.spec.target, "model_handles", None) or [None])
    times = max(targets, 1) * plan.trials
    return Forecast(
        samples=samples,
        targets=targets,
        trials=plan.trials,
        conversations=samples * times,
        turns=turns * times,
        messages=0 if plan.replays else turns * times,
        verdicts=verdicts * times,
        concurrency=plan.concurrency,
        led=tester is not None,
    )
