"""Grading a stored run again, with the graders of its own suite or of another suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from vivavoce.errors import UsageError
from vivavoce.grading.asked import Asked
from vivavoce.pacing.limits import Budget
from vivavoce.records.run import Listener, Run, is_watched
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring
from vivavoce.run.options import RunOptions
from vivavoce.run.regrading import Regrading, sample_of
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder
from vivavoce.suites.check import prepare
from vivavoce.suites.expecting import Assertions, grades_assertions
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, dump_spec, stored_suite
from vivavoce.suites.plan import IN_ONE_RUN, plan_of
from vivavoce.suites.spec import TrialsUntil


def open_regrading(
    name: str,
    suite: Suite | None = None,
    options: RunOptions | None = None,
    *,
    store: Store,
    listeners: Sequence[Listener] = (),
    resumed: str | None = None,
) -> Regrading:
    """Return the regrading of a run, ready to execute.

    `suite` has other graders, and other ground truths for samples of the same id; without it, the run's own suite is
    used, with its grading functions as they are now. Only the options about judges and about errors are used; without
    a limit on errors, that of the run holds. `resumed` names an interrupted set of scores to continue.

    Raises:
        UsageError: there is no such run, or it is not finished.
    """
    run, options = store.run(name), options or RunOptions()
    if options.batch:
        raise UsageError(IN_ONE_RUN)
    if run.status != "finished":
        raise UsageError(f"run {run.id} is not finished; {_how_to_finish(run)}")
    if options.max_errors is None:
        options = options.model_copy(update={"max_errors": run.options.get("max_errors")})
    build = partial(_build, run, suite, options, store)
    return Regrading(build, store, options, listeners, run=run, resumed=resumed)


def _how_to_finish(run: Run) -> str:
    if is_watched(run):
        return "it is when its day or hour is over; viva watch --once, with its options, ends it now"
    return f"first continue it with: viva run --resume {run.id}"


def _build(
    run: Run,
    other: Suite | None,
    options: RunOptions,
    store: Store,
    budget: Budget,
    answers: ReplyStore | None,
) -> Experiment:
    suite = other or stored_suite(run)
    judges = JudgeOpener(budget, answers, options.replay, suite.spec.max_concurrent, base=suite.base)
    if other is None:
        return scoring_of(run, judges, store)
    plan = plan_of(suite, RunOptions(trials=run.options.get("trials")))
    prepared = prepare(suite, plan, judges, _tester(run))
    return _experiment(prepared.suite, prepared.scoring, Samples(plan.every))


def scoring_of(run: Run, judges: JudgeOpener, store: Store) -> Experiment:
    """Return an experiment without samples that has the scoring of a run, whose conversations are in a store.

    Raises:
        UsageError: something that its suite names is not there any more.
    """
    suite = stored_suite(run)
    trials = suite.spec.trials
    until = trials if isinstance(trials, TrialsUntil) and not run.options.get("trials") else None
    asked = _collect_assertions(suite, store, run.id)
    builder = Builder(suite, judges.open, tester=_tester(run), asked=asked, until=until)
    return _experiment(suite, builder.scoring(), Samples(tuple, count=0))


def _tester(run: Run) -> str:
    return str(run.options.get("tester", ""))


def _experiment(suite: Suite, scoring: Scoring, samples: Samples) -> Experiment:
    return Experiment(
        name=suite.spec.name,
        samples=samples,
        scoring=scoring,
        limits=Limits(suite.spec.max_concurrent),
        description=Description(dump_spec(suite), suite.base, suite.source),
        notes=suite.notes,
    )


def _collect_assertions(suite: Suite, store: Store, run_id: str) -> Mapping[str, Asked]:
    """Return what the assertions of the rows of a run ask of metrics."""
    assertions = Assertions()
    graded = any(grades_assertions(grader) for grader in suite.spec.graders.values())
    for attempt in store.attempts(run_id) if graded else ():
        assertions.check(sample_of(attempt, {}))
    return assertions.asked
