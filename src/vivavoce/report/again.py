"""Commands that show a run or make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from vivavoce.records.run import Grading, Run, is_from_python, is_watched, lacks_key, parts_of
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.store.store import Store


def show_command(run_id: str, sample: str, options: Sequence[str] = ()) -> str:
    """Return the command as a shell takes it; `options` are those that it needs to find the run, such as `--store`."""
    words = [run_id, *(["--"] if sample.startswith("-") else []), sample]
    return shlex.join(["viva", "show", *options, *map(safe, words)])


def continuing(run: Run, options: Sequence[str] = ()) -> str:
    """Return the line with the command that does what is left of a run; `options` are what it needs to find the run."""
    if is_watched(run):
        return "continue with: viva watch"
    if (folder := parts_of(run)) is not None:
        return f"continue with the command that created {folder}, then: {shlex.join(['viva', 'merge', folder])}"
    return f"continue with: {shlex.join(['viva', 'run', '--resume', run.id, *options])}"


def errors_again(store: Store, grading: Grading, summary: Summary, options: Sequence[str] = ()) -> str | None:
    """Return the line that says how to try again what had an error; None where nothing had, or none can.

    The first scores of a run are made with its conversations, which are then held again; other scores are made again.
    Where the suite is to blame for all errors, the line says to correct it.
    """
    run = store.run(grading.run_id)
    broken = max(summary.error_attempts, summary.failed_attempts)
    if not broken or is_from_python(run) or is_watched(run) or lacks_key(run) or parts_of(run) is not None:
        return None
    first = store.gradings(run.id)[0].id == grading.id
    if first and _are_of_the_suite(store, grading):
        return f"{count(broken, 'conversation')} cannot be decided as the suite is: correct it, then run again"
    words = ["viva", "run", "--resume", run.id, "--errors"] if first else ["viva", "grade", run.id]
    return f"try {count(broken, 'conversation')} with an error again: {shlex.join([*words, *options])}"


def _are_of_the_suite(store: Store, grading: Grading) -> bool:
    """Say whether the suite is to blame for every error, so that trying again changes nothing."""
    failures = [error.failure for error in store.errors(grading.id)]
    return bool(failures) and all(failure is not None and failure.blame == "suite" for failure in failures)
