"""Runs in parts: `viva runs merge`, and what `viva judge` and `viva run` do with `--parts`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from vivavoce.cli.options import InParts, MaxErrorsOption
from vivavoce.cli.output import StoreOption, notes, out, store_of
from vivavoce.cli.progress import EVERY
from vivavoce.cli.runner import report_run
from vivavoce.errors import UsageError
from vivavoce.features.parts.cluster import RayWorkers
from vivavoce.features.parts.job import Job, job_of, kept_job
from vivavoce.features.parts.merging import merge, rows_left_out
from vivavoce.features.parts.part_file import read_part, summary_of
from vivavoce.features.parts.pool import OneProcess, Pool, Progress, shard_of, work_through
from vivavoce.features.parts.work import Allowance, done_parts, worked_before
from vivavoce.files.places import Folder, is_address
from vivavoce.grading.scores import ErrorLimit
from vivavoce.records.details import dollars
from vivavoce.report.terminal import STYLES, summary_table
from vivavoce.report.text import count, one_line
from vivavoce.report.verdict import explain_verdict
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import EXIT_CODES, Summary
from vivavoce.run.workers import INTERRUPTED
from vivavoce.safe_text import safe
from vivavoce.store.store import Store
from vivavoce.suites.load import Suite


def command(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder or address passed to --parts.")],
    *,
    max_errors: MaxErrorsOption = None,
    store: StoreOption = None,
) -> None:
    """Merge the parts from viva judge --parts or viva run --parts into one run of the store.

    Parts that are already merged stay, so you can repeat the command when more parts are done. Exit codes: those of
    viva run; 3 while parts are missing.
    """
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=notes(),
        transient=True,
    )
    with Store.open(store_of(store)) as opened:
        with bar:
            task = bar.add_task("conversations", total=None)
            result = merge(
                Folder(folder),
                opened,
                lambda done, total: bar.update(task, completed=done, total=total),
                max_errors=max_errors,
            )
        report_run(opened, result, None, ["--store", store] if store else [])
    if left_out := rows_left_out(Folder(folder)):
        notes().print(f"without {count(left_out, 'row')} of the files that viva could not read as conversations")
    raise typer.Exit(result.exit_code)


_SHOWN = 5
"""Broken rows and files that are named."""


def work_in_parts(
    suite: Suite, files: Sequence[str] | None, how: InParts, options: RunOptions, store: str | None, *, quiet: bool
) -> int:
    """Work on the parts of recorded conversations, or without `files` of the suite's dataset; return the exit code."""
    if files is None:
        return run_in_parts(suite, how, options, store, quiet=quiet)
    return _report(_work_on_parts(suite, files, how, options, quiet=quiet), options.max_errors)


def run_in_parts(suite: Suite, how: InParts, options: RunOptions, store: str | None, *, quiet: bool) -> int:
    """Work on the parts of a suite's dataset that are not done; when all are, make them one run of the store.

    Return the exit code. `store` is what names the store, None for the usual one.
    """
    path = suite.spec.dataset.path
    if path is None:
        raise UsageError("the suite contains its rows; to run them in parts, put them into a JSONL file")
    worked = _work_on_parts(suite, [str(suite.base / path)], how, options, quiet=quiet)
    if worked.open_parts or worked.progress.broken:
        return _report(worked, options.max_errors)
    with Store.open(store_of(store)) as opened:
        result = merge(worked.folder, opened, lambda done, of: None, max_errors=options.max_errors)
        report_run(opened, result, None, ["--store", store] if store else [])
    for line in _problems(worked.folder, worked.progress):
        out().print(one_line(safe(line), 300), soft_wrap=True)
    return result.exit_code or _exit_code(worked, options.max_errors)


@dataclass(frozen=True, slots=True)
class _Worked:
    """A job, and how far its parts are; `open_parts` counts those of the whole job that are not done."""

    job: Job
    folder: Folder
    progress: Progress

    @property
    def open_parts(self) -> int:
        return len(self.job.parts) - len(done_parts(self.job, self.folder))


def _work_on_parts(suite: Suite, patterns: Sequence[str], how: InParts, options: RunOptions, *, quiet: bool) -> _Worked:
    whole = {"--max-samples": options.max_samples, "--sample": options.samples, "--tag": options.tags}
    if named := [name for name, value in {**whole, "--replay": options.replay or None}.items() if value is not None]:
        raise UsageError(f"{named[0]} needs the whole dataset, which a part does not have; leave it out")
    folder = Folder(how.folder)
    job = kept_job(folder, job_of(suite, patterns, options))
    done = done_parts(job, folder)
    mine = job.parts if how.shard is None else shard_of(job.parts, *how.shard)
    progress = Progress(len(mine), sum(part.piece.rows for part in mine) * job.each)
    progress.done.update((one.name, worked_before(folder, one.name)) for one in mine if one.name in done)
    progress.broken.update((file.place, file.problem) for file in job.files if file.problem is not None)
    todo = [part for part in mine if part.name not in done]
    todo += [replace(part, again=True) for part in mine if part.name in done and progress.done[part.name].errors]
    with _Shown(quiet, progress) as shown:
        if todo:
            pool = _pool(how, job, folder, quiet=quiet)
            allowance = Allowance(pool.size, options.max_calls, options.max_cost)
            work_through(todo, pool, allowance, progress, shown.tell)
    return _Worked(job, folder, progress)


def _pool(how: InParts, job: Job, folder: Folder, *, quiet: bool) -> Pool:
    scratch = _scratch(job, folder)
    if how.ray:
        return RayWorkers(job, folder, scratch, how.workers, how.address, quiet=quiet)
    return OneProcess(job, folder, scratch)


def _scratch(job: Job, folder: Folder) -> Path:
    """Return the folder of this machine where parts are while they are worked on."""
    if is_address(folder.place):
        return Path(tempfile.gettempdir()) / f"vivavoce-{job.run_id}"
    return Path(folder.place).absolute() / ".working"


class _Shown:
    """Shows how far the work is: a bar in a terminal, otherwise a line from time to time."""

    def __init__(self, quiet: bool, progress: Progress) -> None:
        self._console = notes()
        self._quiet, self._progress = quiet, progress
        self._bar = Bar(
            SpinnerColumn(),
            MofNCompleteColumn(),
            TextColumn("parts"),
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=progress.parts)
        self._spoke_at = time.monotonic()

    def __enter__(self) -> _Shown:
        if not self._quiet and self._progress.done:
            done = sum(not one.errors for one in self._progress.done.values())
            self._console.print(f"{done} of {count(self._progress.parts, 'part')} already done")
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def tell(self, progress: Progress) -> None:
        """Show how far it is now."""
        line = ", ".join([*_so_far(progress), *_deaths(progress)])
        self._bar.update(self._task, completed=len(progress.done), description=line)
        now = time.monotonic()
        if not self._quiet and not self._console.is_terminal and now - self._spoke_at > EVERY:
            self._spoke_at = now
            self._console.print(f"{len(progress.done)}/{progress.parts} parts  {line}")


def _so_far(progress: Progress) -> Iterator[str]:
    yield count(progress.conversations, "conversation")
    if progress.errors:
        yield f"{progress.errors:,} with errors"
    if progress.problems:
        yield f"{count(progress.problems, 'row')} left out"
    if progress.cost:
        yield dollars(progress.cost)


def _deaths(progress: Progress) -> Iterator[str]:
    if progress.deaths:
        yield f"{count(progress.deaths, 'worker')} died while working and was replaced"


def _report(worked: _Worked, max_errors: str | None) -> int:
    """Print what the parts show and what is left, and return the exit code."""
    console, folder, progress = out(), worked.folder, worked.progress
    summary = summary_of(folder, progress.done, ErrorLimit(max_errors or "0")) if progress.conversations else None
    if summary is not None:
        console.print(summary_table(summary))
        console.print()
    so_far = ", ".join(_so_far(progress))
    unread = [f"{count(len(progress.broken), 'part or file')} could not be done"] if progress.broken else []
    finished = f"{so_far} in {len(progress.done):,} of {count(progress.parts, 'part')}"
    console.print("; ".join([finished, *_deaths(progress), *unread]), soft_wrap=True)
    for line in (*_problems(folder, progress), *_list_errors(progress)):
        console.print(one_line(safe(line), 300), soft_wrap=True)
    if progress.stopped is not None:
        console.print(f"{progress.judged:,} of {progress.planned:,} conversations judged and kept", soft_wrap=True)
        console.print(f"stopped: {progress.stopped}; the same command goes on", soft_wrap=True)
    elif again := [what for what, there in (("broken", progress.broken), ("an error", progress.errors)) if there]:
        console.print(f"what is {' or '.join(again)} is tried again by the same command", soft_wrap=True)
    if progress.conversations:
        console.print(f"as a run, with pages: viva runs merge {quote(folder.place)}", soft_wrap=True)
    if summary is not None and summary.verdict == "fail":
        console.print(Text("FAIL", style=STYLES["fail"]))
        for line in explain_verdict(summary):
            console.print(one_line(safe(line), 300), soft_wrap=True)
    return _exit_code(worked, max_errors, summary)


def _exit_code(worked: _Worked, max_errors: str | None, summary: Summary | None = None) -> int:
    progress = worked.progress
    if progress.stopped == INTERRUPTED:
        return 130
    if summary is not None and summary.verdict == "fail":
        return EXIT_CODES["fail"]
    errors, limit = progress.errors + progress.problems, ErrorLimit(max_errors or "0")
    too_many = limit.exceeded(errors, progress.conversations + progress.problems)
    return 3 if progress.stopped or progress.broken or too_many else 0


def _problems(folder: Folder, progress: Progress) -> Iterator[str]:
    """Yield the first rows that are not conversations, with their files."""
    shown = 0
    for name, worked in sorted(progress.done.items()):
        if not worked.problems or shown == _SHOWN:
            continue
        with read_part(folder, name) as part:
            for problem in part.about.problems[: _SHOWN - shown]:
                shown += 1
                yield f"{part.about.file}:{problem.row}: {problem.message}"
    if progress.problems > shown:
        yield f"and {count(progress.problems - shown, 'row')} more that are not conversations"


def _list_errors(progress: Progress) -> Iterator[str]:
    for place, why in list(progress.broken.items())[:_SHOWN]:
        yield why if place in why else f"{place}: {why}"
    if len(progress.broken) > _SHOWN:
        yield f"and {len(progress.broken) - _SHOWN} more that are broken"
