"""Running a part of a run again: what failed in it, or what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.extensions import description
from vivavoce.records.events import Listener
from vivavoce.records.origin import is_from_python, is_watched, lacks_key, parts_of
from vivavoce.records.run import Run
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.samples.selection import Selection, exactly
from vivavoce.store.store import Store
from vivavoce.suites.expecting import EXPECT
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite, load_suite
from vivavoce.suites.opening import options_of
from vivavoce.suites.plan import plan_of
from vivavoce.suites.stored import dump_spec, stored_suite


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
    options = RunOptions.model_validate({**own, **_dumped(options or RunOptions())})
    chosen = failed if options.samples is None else [one for one in failed if one in Selection.of(options.samples)]
    if not chosen:
        raise UsageError(f"no sample that failed in {run.id} is called {' or '.join(options.samples or ())}")
    there = {sample.id for sample in plan_of(suite, options).every()}
    left = [one for one in chosen if one in there]
    if not left:
        raise UsageError(f"none of the {len(chosen):,} samples that failed in {run.id} is in the dataset now")
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
            f"the conversations of {run.id} came in as traces and cannot be held again; grade them again with: "
            f"viva grade {run.id}"
        )
    if parts_of(run) is not None:
        raise UsageError(f"run {run.id} was made in parts, and parts cannot be run again by themselves")
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


def _dumped(options: RunOptions) -> dict[str, Any]:
    return options.model_dump(exclude_none=True, exclude_defaults=True)
