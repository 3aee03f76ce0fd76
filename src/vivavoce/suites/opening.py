"""Starting a run of a suite: from its file, from Python, from an interrupted run, or a part of one again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.extensions import description, first_answer
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import wait_for
from vivavoce.records.replies import Batch
from vivavoce.records.run import Listener, Run, is_from_python, is_watched, lacks_key, parts_of
from vivavoce.run.execution import kept_answers, notebook_listeners
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.samples.rows import Selection, exactly
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.command_line import read_targets
from vivavoce.suites.expecting import EXPECT
from vivavoce.suites.experiment import build_experiment, suite_run
from vivavoce.suites.load import Suite, dump_spec, load_suite, stored_suite
from vivavoce.suites.plan import plan_of
from vivavoce.targets.given import as_target
from vivavoce.targets.target import Target

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
    objects = [as_target(given) for given in targets if not _is_described(given)]
    names = [one.name for one in objects]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two targets are called '{twice}'; give one of the functions another name")
    if objects and len(objects) < len(targets):
        raise UsageError("functions cannot be mixed with other targets; name each function as 'file.py:function'")
    if objects:
        return [{"kind": "function", "function": f"given-in-python.py:{name}"} for name in names], objects
    named = iter(read_targets([given for given in targets if isinstance(given, str)]))
    return [next(named) if isinstance(given, str) else dict(cast("Mapping[str, Any]", given)) for given in targets], []


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
    kept = options_of(run)
    changed: dict[str, Any] = {"max_calls": limits.max_calls, "max_cost": limits.max_cost}
    if limits.max_errors is not None:
        changed["max_errors"] = limits.max_errors
    options = RunOptions.model_validate({**kept, **changed})
    special = first_answer("resume_run", run=run, options=options, store=store, listeners=listeners, errors=errors)
    if special is not None:
        return cast("ExperimentRun", special)
    return suite_run(stored_suite(run), options, store=store, listeners=listeners, resumed=run, retries_errors=errors)


def options_of(run: Run) -> dict[str, Any]:
    """Return the options that a run was started with."""
    return {key: value for key, value in run.options.items() if key in RunOptions.model_fields}


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
        heard = [*listeners, *notebook_listeners()]
        return await open_run(path, options, target=target, store=opened, listeners=heard).execute()


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
        options: what is set for this run, over what the suite says.
        target: what takes the place of the suite's own target: a function, an address, or a mapping as in a suite; or a
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
    own = {**options_of(run), "max_calls": None, "max_cost": None}
    options = RunOptions.model_validate({**own, **_dump_options(options or RunOptions())})
    chosen = failed if options.samples is None else [one for one in failed if one in Selection.of(options.samples)]
    if not chosen:
        raise UsageError(f"no sample that failed in {run.id} is called {' or '.join(options.samples or ())}")
    there = {sample.id for sample in plan_of(suite, options).every()}
    left = [one for one in chosen if one in there]
    if not left:
        raise UsageError(f"none of the {len(chosen):,} samples that failed in {run.id} is still in the dataset")
    if len(left) < len(chosen):
        note = f"{len(chosen) - len(left):,} of the samples that failed in {run.id} are not in the dataset now"
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
    suite, file = stored_suite(run), Path(run.base) / run.options["suite"]
    if not file.is_file() or _as_recorded(load_suite(file)) == _as_recorded(suite):
        return suite
    note = f"{file.name} is not as {run.id} recorded it; to use it as it is now: viva run {file.name} --failed {run.id}"
    return replace(suite, notes=(note,))


def _as_recorded(suite: Suite) -> dict[str, Any]:
    """Return a suite as a run records it, without the grader of the assertions in rows, which a run adds."""
    recorded = dump_spec(suite)
    recorded["graders"] = {name: one for name, one in recorded["graders"].items() if name != EXPECT}
    return recorded


def changed_again(
    run: Run, suite: Suite, options: RunOptions, *, store: Store, listeners: Sequence[Listener] = ()
) -> ExperimentRun:
    """Return a run of a suite that grades the conversations of another run again, and holds only those that changed."""
    new = suite_run(suite, options, store=store, listeners=listeners, partial_of=run)
    return replace(new, reuses_unchanged=True)


def _dump_options(options: RunOptions) -> dict[str, Any]:
    return options.model_dump(exclude_none=True, exclude_defaults=True)


async def cancel_batches(store: Store, run: Run) -> list[Batch]:
    """Ask the services of a run to answer no more, and return the batches that this is about.

    What they have answered is charged, and taken when the run goes on.

    Raises:
        UsageError: the judges of the run cannot be opened, as where a key is missing.
        ModelFault: a service refuses.
    """
    going = [one for one in store.batches.of_run(run.id) if one.ended_at is None and one.service_id is not None]
    if not going:
        return []
    options = RunOptions.model_validate({**options_of(run), "batch": True, "max_calls": None, "max_cost": None})
    async with kept_answers(store, cache=True) as replies:
        experiment = build_experiment(stored_suite(run), options, Budget(), replies)
        models = experiment.batches.models if experiment.batches is not None else {}
        try:
            for batch in going:
                await models[batch.identity].service.cancel(batch.service_id or "")
        finally:
            for model in models.values():
                await model.service.close()
            await experiment.close()
    return going
