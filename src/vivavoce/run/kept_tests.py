"""Keeping the results of tests that were held in Python: a run in the store, as `viva test` leaves one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.evaluation import choose
from vivavoce.pacing.budget import Budget
from vivavoce.pacing.waiting import wait_for
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.result import TestResult
from vivavoce.records.origin import GIVEN_IN_PYTHON
from vivavoce.run.experiment import Description, Experiment, Limits, Samples
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.result import RunResult
from vivavoce.run.scoring import Scoring
from vivavoce.run.tester import trajectory_of
from vivavoce.samples.sample import Sample
from vivavoce.settings import settings
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store

_GRADERS = ("goal_achieved", "target_passed")
_OF_ROWS = {
    *("instructions", "scenario", "context", "policy", "facts", "must", "must_not", "restrictions"),
    *("adversarial", "max_turns", "min_turns"),
}
"""What a row and the context of a test have in common, besides the goal."""
Tests = TestResult | Sequence[TestResult] | Mapping[str, TestResult]
"""One test, several in order, or several by the ids that they get."""


def keep_tests(tests: Tests, *, name: str = "tests", store: str | os.PathLike[str] | None = None) -> RunResult:
    """Store the results of tests as a run, graded by goal and target, and return its summary.

    Each is a sample of the run, by its id, or its number from 1: `evaluate_test_result("RUN/1", …)` measures it, and
    `viva show RUN 1` and the pages show it. `store` is the workspace's own unless named.

    Raises:
        UsageError: there is no test.
    """
    return wait_for(akeep_tests(tests, name=name, store=store))


async def akeep_tests(tests: Tests, *, name: str = "tests", store: str | os.PathLike[str] | None = None) -> RunResult:
    """Async version of `keep_tests`."""
    by_id = _by_id(tests)
    if not by_id:
        raise UsageError("there is no test to keep")

    def build(budget: Budget, answers: ReplyStore | None) -> Experiment:
        del budget, answers
        graders = tuple(metric_grader(metric.name, metric) for metric in choose(_GRADERS))
        samples = [_sample(id_, result.context) for id_, result in by_id.items()]
        return Experiment(
            name=name,
            samples=Samples(lambda: samples, len(samples), GIVEN_IN_PYTHON),
            scoring=Scoring(graders),
            limits=Limits(1),
            description=Description(_spec(name), Path(), "tests"),
            recorded=lambda sample: trajectory_of(by_id[sample.id], by_id[sample.id].duration_seconds),
        )

    with Store.open(store or settings().store) as opened:
        return await ExperimentRun(build, opened, RunOptions()).execute()


def _by_id(tests: Tests) -> Mapping[str, TestResult]:
    if isinstance(tests, TestResult):
        return {"1": tests}
    return tests if isinstance(tests, Mapping) else {str(number): one for number, one in enumerate(tests, 1)}


def _sample(id_: str, context: TestContext) -> Sample:
    """Return the row that a test could have come of."""
    row = context.model_dump(include=_OF_ROWS, exclude_defaults=True)
    said = {"input": list(context.openings)} if context.openings else {}
    return Sample.model_validate({"id": id_, "goal": context.goal, **row, **said})


def _spec(name: str) -> dict[str, Any]:
    """Return the run as data, with the keys of a suite."""
    return {
        "name": name,
        "dataset": {"path": f"({GIVEN_IN_PYTHON})", "fields": {}},
        "driver": "replay",
        "graders": {grader: {"kind": "function", "function": grader} for grader in _GRADERS},
        "agreement": [],
        "trials": 1,
        "max_concurrent": 1,
    }
