"""Keeping the results of tests and of measurements that were made in Python.

Such a set is never complete, so that no list, comparison or trend takes it for the scores of the run. The same metrics
have one set for all conversations of a run; where a conversation is in it already, the next one is begun.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from vivavoce.errors import StoreError, UsageError
from vivavoce.grading.metrics import metric_grader
from vivavoce.metrics.evaluation import choose
from vivavoce.metrics.metric import BaseMultiTurnMetric
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.result import TestResult
from vivavoce.records.run import GIVEN_IN_PYTHON, AttemptKey, Grading, Run
from vivavoce.records.score import Score
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.run.tester import trajectory_of
from vivavoce.samples.sample import Sample
from vivavoce.settings import settings
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store

_DECIDING = frozenset(("gate", "reward", "agreement"))
"""Keys of a suite that say what follows from scores."""


_SET_INFIX = "-m"
"""What stands between the run and the rest in the id of such a set."""


def is_measured(grading: Grading) -> bool:
    """Return whether a set of scores has those of metrics that were chosen for single conversations."""
    return grading.id.startswith(f"{grading.run_id}{_SET_INFIX}")


async def keep_scores(
    store: Store,
    run: Run,
    key: AttemptKey,
    scores: Mapping[str, Score],
    metrics: Sequence[BaseMultiTurnMetric],
    graders: Mapping[str, Any],
) -> str | None:
    """Store the scores of a conversation by metrics, and return the id of their set; None where none can be kept.

    `graders` are the metrics as data, as in a suite.

    Raises:
        StoreError: the store cannot be written, or the run is not there any more.
    """
    kept = [metric for metric in metrics if can_be_kept(scores[metric.name])]
    if not kept:
        return None
    prints = {metric.name: metric_grader(metric.name, metric).fingerprint for metric in kept}
    spec = {name: value for name, value in run.spec.items() if name not in _DECIDING}
    spec["graders"] = {name: graders[name] for name in prints}
    digest = blake2b(json.dumps(prints, sort_keys=True).encode(), digest_size=3).hexdigest()
    for number in count(1):
        set_id = f"{run.id}{_SET_INFIX}{digest}" + (f"-{number}" if number > 1 else "")
        _begin(store, Grading(id=set_id, run_id=run.id, spec=spec, fingerprints=prints, created_at=time.time()))
        if _has(store, set_id, key):
            continue
        try:
            async with store.writer(run.id, set_id, prints) as writer:
                await writer.put_scores(key, {name: scores[name] for name in prints}, None)
        except StoreError:
            if not _has(store, set_id, key):  # else another request was a moment earlier
                raise
        else:
            return set_id
    raise AssertionError("there is always a next set")


def can_be_kept(score: Score) -> bool:
    """Return whether a score has a place in a set: it has a value from 0 to 1, is a measurement, or is not scored."""
    return score.state != "scored" or score.value is not None or score.measured is not None


def _begin(store: Store, grading: Grading) -> None:
    """Add a set of scores unless it is there."""
    if _is_there(store, grading):
        return
    try:
        store.add_grading(grading)
    except StoreError:
        if not _is_there(store, grading):  # else another request was a moment earlier
            raise


def _is_there(store: Store, grading: Grading) -> bool:
    return any(one.id == grading.id for one in store.gradings(grading.run_id))


def _has(store: Store, set_id: str, key: AttemptKey) -> bool:
    found = store.outcomes(set_id, sample_id=key.sample_id)
    return any(outcome.scores for outcome in found if outcome.attempt.key == key)


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
        raise UsageError("no test to store")

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
