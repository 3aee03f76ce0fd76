"""From a suite to the experiment that it describes, and to its runs: new, resumed, in part, and graded again."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vivavoce.errors import UsageError
from vivavoce.extensions import description, first_answer
from vivavoce.grading.asked import Asked
from vivavoce.grading.grader import fingerprint
from vivavoce.models.cache import Replies
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.plugins import load_object
from vivavoce.records.run import Listener, Run, is_from_python, is_watched, lacks_key, parts_of, reading_record
from vivavoce.run.attempt import RECORDED
from vivavoce.run.execution import notebook_listeners
from vivavoce.run.experiment import Description, Experiment, Limits, Samples, Scoring, Scripted
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.regrading import Regrading, sample_of
from vivavoce.run.summary import RunResult
from vivavoce.samples.rows import Selection, exactly
from vivavoce.settings import settings
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder, needs_state
from vivavoce.suites.check import check_tester, prepare, tester_of
from vivavoce.suites.command_line import read_targets
from vivavoce.suites.expectations import EXPECT, Assertions, grades_assertions
from vivavoce.suites.hooks import check_setup, run_setup, takes_model
from vivavoce.suites.judges import JudgeOpener, judges_in_batches
from vivavoce.suites.load import Suite, dump_spec, load_suite, stored_suite
from vivavoce.suites.plan import IN_ONE_RUN, plan_of
from vivavoce.suites.spec import TrialsUntil
from vivavoce.suites.targets import build_targets, check_rows, code_files, has_client, target_limits
from vivavoce.targets.function import as_target
from vivavoce.targets.target import Target
from vivavoce.user_code import hash_code

if TYPE_CHECKING:
    from vivavoce.run.batches import BatchedJudges


def suite_run(
    suite: Suite,
    options: RunOptions,
    *,
    store: Store,
    listeners: Sequence[Listener] = (),
    targets: Sequence[Target] = (),
    resumed: Run | None = None,
    retries_errors: bool = False,
    partial_of: Run | None = None,
    run_id: str | None = None,
) -> ExperimentRun:
    """Return a run of a suite, ready to execute; `targets` replace those of the suite, `run_id` names a new run."""
    build = partial(build_experiment, suite, options, targets=targets)
    return ExperimentRun(
        build,
        store,
        options,
        listeners,
        resumed=resumed,
        retries_errors=retries_errors,
        partial_of=partial_of,
        run_id=run_id,
    )


def build_experiment(
    suite: Suite, options: RunOptions, budget: Budget, answers: Replies | None, targets: Sequence[Target] = ()
) -> Experiment:
    """Return the experiment that a suite describes; `targets` replace those of the suite.

    Raises:
        UsageError: the suite, its files or its dataset are wrong.
    """
    plan, spec = plan_of(suite, options), suite.spec
    batches = _batches(options, budget, answers)
    judges = JudgeOpener(budget, answers, options.replay, plan.concurrency, base=suite.base, batches=batches)
    tester = tester_of(suite, judges)
    prepared = prepare(suite, plan, judges, tester.agent.fingerprint if tester else "")
    if tester is not None:
        check_tester(suite, tester)
    plan, draw = prepared.plan, prepared.plan.draw
    samples = Samples(plan.samples, plan.count(prepared.dataset.samples), plan.dataset, spec.dataset.place)
    if draw is not None:
        samples = replace(samples, sampling=draw.sampling, drawn=[*draw.places.values()])
    systems = tuple(targets or build_targets(suite, plan.concurrency))
    if spec.driver != "replay":
        check_rows(suite, systems, prepared.dataset)
    own = {target.name: limit for target, limit in zip(systems, target_limits(suite, plan.concurrency), strict=False)}
    return Experiment(
        name=spec.name,
        samples=samples,
        scoring=prepared.scoring,
        limits=Limits(plan.concurrency),
        description=Description(
            dump_spec(prepared.suite), suite.base, suite.source, None if targets else code_of(suite)
        ),
        driver=tester or scripted_driver(suite),
        targets=systems,
        own_limits=own,
        trials=plan.trials,
        set_up=set_up_of(suite, systems),
        notes=prepared.suite.notes,
        batches=batches,
    )


def _batches(options: RunOptions, budget: Budget, answers: Replies | None) -> BatchedJudges | None:
    """Return judges that are asked in batches, None where they are asked directly.

    Raises:
        UsageError: the answers are kept where those of batches cannot be.
    """
    if not options.batch:
        return None
    if not isinstance(answers, ReplyStore):
        raise UsageError(IN_ONE_RUN)
    return judges_in_batches(budget, answers)


def scripted_driver(suite: Suite) -> Scripted | None:
    """Return the driver of the conversations, None for recorded ones."""
    if suite.spec.driver == "replay":
        return None
    return Scripted(needs_state(suite.spec.graders, suite.base))


def code_of(suite: Suite) -> str | None:
    """Return a hash of the code under test and of the files that answer tools, None if there are none."""
    files = [file for spec in suite.spec.all_targets.values() for file in code_files(spec)]
    files += [] if suite.spec.recording is None else [suite.spec.recording.path]
    hashes = [hash_code((suite.base / file).resolve()) for file in dict.fromkeys(files)]
    return fingerprint(hashes) if len(hashes) > 1 else next(iter(hashes), None)


def set_up_of(suite: Suite, targets: Sequence[Target]) -> Callable[[], Awaitable[None]] | None:
    """Return the set-up to call once before the first conversation, if the suite names one."""
    reference = suite.spec.setup_script
    if reference is None:
        return None
    function = load_object(reference, suite.base)
    parameters = check_setup(function, reference, has_client=has_client(suite))
    models = {name: model or name for spec in suite.spec.all_targets.values() for name, model in spec.names_and_models}
    asks = "client" in parameters
    clients = [
        (getattr(target, "client", None) if asks else None, models.get(target.name, target.name)) for target in targets
    ]
    if asks:
        clients = [(client, name) for client, name in clients if client is not None]
    clients = clients or [(None, RECORDED)]

    async def set_up() -> None:
        for client, name in clients if takes_model(parameters) else clients[:1]:
            await run_setup(function, parameters, client, name)

    return set_up


GivenTarget = str | Mapping[str, Any] | Callable[..., Any] | Target | object
"""A target that replaces the suite's own: a name as on the command line, a mapping as in a suite, a Python function, an
object of a framework, or a target."""


def open_run(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: GivenTarget | Sequence[GivenTarget] | None = None,
    store: Store,
    listeners: Sequence[Listener] = (),
) -> ExperimentRun:
    """Return a run of a suite, ready to execute; `target`, one or several, replaces the suite's own.

    Raises:
        UsageError: the file does not describe a suite, or the targets do not go together.
    """
    described, objects = _describe_targets(target)
    suite = load_suite(Path(path), described)
    return suite_run(suite, options or RunOptions(), store=store, listeners=listeners, targets=objects)


def _describe_targets(target: GivenTarget | Sequence[GivenTarget] | None) -> tuple[list[dict[str, Any]], list[Target]]:
    """Return targets as in a suite, and the targets themselves if they are functions or other objects.

    Raises:
        UsageError: functions have the same name, or stand next to other targets.
    """
    targets = _list_targets(target)
    objects = [as_target(candidate) for candidate in targets if not _is_described(candidate)]
    names = [system.name for system in objects]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two targets are called '{twice}'; give one of the functions another name")
    if objects and len(objects) < len(targets):
        raise UsageError("functions cannot be mixed with other targets; name each function as 'file.py:function'")
    if objects:
        return [{"kind": "function", "function": f"given-in-python.py:{name}"} for name in names], objects
    by_name = iter(read_targets([candidate for candidate in targets if isinstance(candidate, str)]))
    return [
        next(by_name) if isinstance(candidate, str) else dict(cast("Mapping[str, Any]", candidate))
        for candidate in targets
    ], []


def _list_targets(target: GivenTarget | Sequence[GivenTarget] | None) -> list[GivenTarget]:
    if target is None:
        return []
    return list(cast("Sequence[GivenTarget]", target)) if isinstance(target, list | tuple) else [target]


def _is_described(target: object) -> bool:
    return isinstance(target, str | Mapping)


def reopen_run(
    name: str,
    limits: RunOptions | None = None,
    *,
    store: Store,
    listeners: Sequence[Listener] = (),
    errors: bool = False,
) -> ExperimentRun:
    """Return an interrupted run, ready to continue; with `errors`, any run, and what ended with an error is retried.

    Three of the `limits` are used: `max_calls` and `max_cost` (in US dollars) limit further calls of models, None for
    no limit; `max_errors` replaces the limit the run was started with.

    Raises:
        UsageError: there is no such run, or it is finished.
    """
    run = store.run(name)
    if run.status == "finished" and not errors:
        retry = _with_errors(store, run)
        raise UsageError(
            f"run {run.id} is finished; there is nothing to resume. {retry}See it with: viva show {run.id}"
        )
    if is_from_python(run):
        raise UsageError(f"run {run.id} was started in Python; continue it there: evaluate(…, resume='{run.id}')")
    if is_watched(run):
        raise UsageError(f"run {run.id} has conversations from traces; continue with: viva watch")
    if (folder := parts_of(run)) is not None:
        raise UsageError(
            f"run {run.id} was run in parts; continue with the command that created {folder}, then: viva runs "
            f"merge {folder}"
        )
    if lacks_key(run):
        raise UsageError(
            f"cannot resume {run.id}: its target contained a key, which is not stored; put it in a header as "
            f"${{NAME}}, set NAME in the environment, and start a new run"
        )
    limits = limits or RunOptions()
    changed: dict[str, Any] = {"max_calls": limits.max_calls, "max_cost": limits.max_cost}
    if limits.max_errors is not None:
        changed["max_errors"] = limits.max_errors
    options = stored_options(run, **changed)
    special = first_answer("resume_run", run=run, options=options, store=store, listeners=listeners, errors=errors)
    if special is not None:
        return cast("ExperimentRun", special)
    return suite_run(stored_suite(run), options, store=store, listeners=listeners, resumed=run, retries_errors=errors)


def stored_options(run: Run, **changes: Any) -> RunOptions:
    """Return the options that a run was started with, with changes.

    Raises:
        UnreadableRun: they cannot be read.
    """
    stored = {key: value for key, value in run.options.items() if key in RunOptions.model_fields}
    with reading_record(run, "options"):
        return RunOptions.model_validate({**stored, **changes})


def _with_errors(store: Store, run: Run) -> str:
    """Return how to retry what had an error, empty if nothing had one."""
    number = store.error_count(store.grading(run.id).id)
    if not number:
        return ""
    had = "1 conversation" if number == 1 else f"{number:,} conversations"
    return f"{had} had an error; retry with: viva run --resume {run.id} --errors. "


async def arun_suite(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: GivenTarget | Sequence[GivenTarget] | None = None,
    store: str | os.PathLike[str] | None = None,
    listeners: Sequence[Listener] = (),
) -> RunResult:
    """Async version of `run_suite`; `listeners` hear of each conversation as it goes on."""
    with Store.open(store or settings().store) as opened:
        all_listeners = [*listeners, *notebook_listeners()]
        return await open_run(path, options, target=target, store=opened, listeners=all_listeners).execute()


def run_suite(
    path: Path | str,
    options: RunOptions | None = None,
    *,
    target: GivenTarget | Sequence[GivenTarget] | None = None,
    store: str | os.PathLike[str] | None = None,
) -> RunResult:
    """Run a suite, wait for it and return what came out; works where an event loop is running already.

    Args:
        path: the file of the suite.
        options: settings of this run, which override the suite's.
        target: replaces the suite's own target: a function, an address, or a mapping as in a suite; or a
            list of such.
        store: where records go, a path or an address; the workspace's own unless named.

    Raises:
        UsageError: the suite, its files or its dataset are wrong; nothing was run.
    """
    return wait_for(arun_suite(path, options, target=target, store=store))


def failed_again(
    run: Run, suite: Suite, options: RunOptions | None = None, *, store: Store, listeners: Sequence[Listener] = ()
) -> ExperimentRun | None:
    """Return a run over only the samples that failed or had an error in another run; None if there is none.

    `suite` is usually that of the other run, as it is now. The options may choose among the samples; trials and the use
    of cached answers are those of the other run unless they are given.

    Raises:
        UsageError: none of these samples is in the dataset now, or none is chosen.
    """
    failed = store.failed_samples(store.grading(run.id).id)
    if not failed:
        return None
    unlimited = {"max_calls": None, "max_cost": None}
    options = stored_options(run, **{**unlimited, **_dump_options(options or RunOptions())})
    selected_ids = (
        failed
        if options.samples is None
        else [sample_id for sample_id in failed if sample_id in Selection.of(options.samples)]
    )
    if not selected_ids:
        raise UsageError(f"no failed sample of {run.id} is named {' or '.join(options.samples or ())}")
    there = {sample.id for sample in plan_of(suite, options).every()}
    left = [sample_id for sample_id in selected_ids if sample_id in there]
    if not left:
        raise UsageError(f"none of the {len(selected_ids):,} samples that failed in {run.id} is still in the dataset")
    if len(left) < len(selected_ids):
        note = f"{len(selected_ids) - len(left):,} of the samples that failed in {run.id} are not in the dataset now"
        suite = replace(suite, notes=(*suite.notes, note))
    options = options.model_copy(update={"samples": exactly(left)})
    return suite_run(suite, options, store=store, listeners=listeners, partial_of=run)


def suite_of(run: Run) -> Suite:
    """Return the suite of a run as the run recorded it, to run it again; a note says where its file differs now.

    Raises:
        UsageError: the run was started in Python, or its target contained a key.
    """
    if is_from_python(run):
        raise UsageError(f"run {run.id} was started in Python, where its conversations are; start it again there")
    if is_watched(run):
        raise UsageError(
            f"the conversations of {run.id} came from traces and cannot be repeated; grade them again with: "
            f"viva runs grade {run.id}"
        )
    if parts_of(run) is not None:
        raise UsageError(f"run {run.id} was run in parts, and single parts cannot be repeated")
    if (special := description(run)) is not None:
        raise UsageError(f"run {run.id} is a {special.words}; {special.again}")
    if lacks_key(run):
        raise UsageError(f"the target of {run.id} contained a key, which is not stored; name the suite, too")
    suite, file = stored_suite(run), Path(run.base) / run.option("suite")
    if not file.is_file() or _as_recorded(load_suite(file)) == _as_recorded(suite):
        return suite
    note = f"{file.name} is not as {run.id} recorded it; to use it as it is now: viva run {file.name} --failed {run.id}"
    return replace(suite, notes=(note,))


def _as_recorded(suite: Suite) -> dict[str, Any]:
    """Return a suite as a run records it, without the grader of the assertions in rows, which a run adds."""
    recorded = dump_spec(suite)
    recorded["graders"] = {name: spec for name, spec in recorded["graders"].items() if name != EXPECT}
    return recorded


def changed_again(
    run: Run, suite: Suite, options: RunOptions, *, store: Store, listeners: Sequence[Listener] = ()
) -> ExperimentRun:
    """Return a run of a suite that grades the conversations of another run again, and holds only those that changed."""
    new = suite_run(suite, options, store=store, listeners=listeners, partial_of=run)
    return replace(new, reuses_unchanged=True)


def _dump_options(options: RunOptions) -> dict[str, Any]:
    return options.model_dump(exclude_none=True, exclude_defaults=True)


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
        options = options.model_copy(update={"max_errors": stored_options(run).max_errors})
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
    plan = plan_of(suite, RunOptions(trials=stored_options(run).trials))
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
    metric_assertions = _collect_assertions(suite, store, run.id)
    builder = Builder(suite, judges.open, tester=_tester(run), metric_assertions=metric_assertions, until=until)
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
    return assertions.metric_assertions
