"""Starting a run of a suite: from its file, from an interrupted run, or from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.extensions import first_answer
from vivavoce.pacing.waiting import wait_for
from vivavoce.records.events import Listener
from vivavoce.records.origin import is_from_python, is_watched, lacks_key, parts_of
from vivavoce.records.run import Run
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.notebook_progress import notebook_progress
from vivavoce.run.options import RunOptions
from vivavoce.run.result import RunResult
from vivavoce.settings import settings
from vivavoce.store.store import Store
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import load_suite
from vivavoce.suites.stored import stored_suite
from vivavoce.suites.target_names import read_targets
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
    described, objects = _described(target)
    suite = load_suite(Path(path), described)
    return suite_run(suite, options or RunOptions(), store=store, listeners=listeners, targets=objects)


def _described(target: GivenTarget | Sequence[GivenTarget] | None) -> tuple[list[dict[str, Any]], list[Target]]:
    """Return targets as in a suite, and the targets themselves if they are functions or other objects.

    Raises:
        UsageError: functions have the same name, or stand beside other targets.
    """
    targets = _listed(target)
    objects = [as_target(given) for given in targets if not _is_described(given)]
    names = [one.name for one in objects]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two targets are called '{twice}'; give one of the functions another name")
    if objects and len(objects) < len(targets):
        raise UsageError("functions stand beside other targets; name each function as 'file.py:function'")
    if objects:
        return [{"kind": "function", "function": f"given-in-python.py:{name}"} for name in names], objects
    named = iter(read_targets([given for given in targets if isinstance(given, str)]))
    return [next(named) if isinstance(given, str) else dict(cast("Mapping[str, Any]", given)) for given in targets], []


def _listed(target: GivenTarget | Sequence[GivenTarget] | None) -> list[GivenTarget]:
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
        raise UsageError(f"run {run.id} has conversations that came in as traces; go on with: viva watch-traces")
    if (folder := parts_of(run)) is not None:
        raise UsageError(
            f"run {run.id} was made in parts; go on with the command that made {folder}, then: viva merge {folder}"
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
        heard = [*listeners, *notebook_progress()]
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
