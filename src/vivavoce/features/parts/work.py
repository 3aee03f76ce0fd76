"""The work on a part: a run of its suite over its rows, what it may spend, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vivavoce.errors import StoreError, UsageError
from vivavoce.features.parts.job import Job, Part
from vivavoce.features.parts.part_file import SUFFIX, About, RowProblem, read_part, write_part
from vivavoce.features.parts.slices import Slicer, write_without
from vivavoce.files.places import Folder
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.run import Run
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.store.maintenance.copying import put_run
from vivavoce.store.runs.reading import Reader
from vivavoce.store.runs.rows import Entry, grading_values, run_values
from vivavoce.store.store import Store
from vivavoce.suites.dataset import unusable
from vivavoce.suites.experiment import suite_run
from vivavoce.suites.load import Suite


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What one worker may spend on one part, None for no limit; `workers` share rates and concurrency."""

    workers: int
    max_calls: int | None = None
    max_cost: float | None = None


@dataclass(slots=True)
class Allowance:
    """The calls and the cost, in US dollars, that are left for `workers` workers; None means no limit.

    A share is a part of what nobody holds, so that the others need not wait. What a worker did not spend comes back; of
    one that died nobody knows what it spent, so all of its share counts as spent.
    """

    workers: int
    max_calls: int | None = None
    max_cost: float | None = None
    _held: set[Share] = field(default_factory=set[Share], init=False)

    def share(self, *, whole: bool = False) -> Share | None:
        """Return a share, or the `whole` rest; None where nothing is left, or others hold all of it."""
        parts = 1 if whole else 2 * max(1, self.workers - len(self._held))
        calls = None if self.max_calls is None else -(-self.max_calls // parts)
        cost = None if self.max_cost is None else self.max_cost / parts
        if calls == 0 or (cost is not None and cost <= 0):
            return None
        given = Share(self.workers, calls, cost)
        self._change(given, -1)
        self._held.add(given)
        return given

    def returned(self, share: Share, calls: int, cost: float) -> None:
        """Take a share back of which so much was spent."""
        self._held.remove(share)
        self._change(share, 1)
        if self.max_calls is not None:
            self.max_calls = max(0, self.max_calls - calls)
        if self.max_cost is not None:
            self.max_cost = max(0.0, self.max_cost - cost)

    def lost(self, share: Share) -> None:
        """Take note that a worker died with its share."""
        self._held.remove(share)

    def _change(self, share: Share, sign: int) -> None:
        if self.max_calls is not None and share.max_calls is not None:
            self.max_calls += sign * share.max_calls
        if self.max_cost is not None and share.max_cost is not None:
            self.max_cost += sign * share.max_cost


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of the work on a part.

    `conversations` are in its file, `problems` counts the rows that are not. Without `is_done` it was ended early, as
    `why` says, with `kept` conversations stored, and goes on when it is worked on again; or its file is `broken`, and
    why. With `is_over` no part can be worked on now, as where the disk is full. `calls` and `cost` were spent this
    time.
    """

    name: str
    is_done: bool
    conversations: int = 0
    kept: int = 0
    errors: int = 0
    problems: int = 0
    calls: int = 0
    cost: float = 0.0
    why: str | None = None
    broken: str | None = None
    is_over: bool = False


Carry = Callable[[ExperimentRun], RunResult]
"""Carries out a run, and waits for it."""


def carry_out(work: ExperimentRun) -> RunResult:
    """Carry out a run without looking at signals, and wait for it."""
    return run_loop(work.execute())


@dataclass(slots=True)
class Worker:
    """Works on one part of a job after the other; `scratch` is a folder of this machine for parts in work.

    A part that was ended early, or whose process died, goes on there where it was: what is stored is neither held nor
    judged again, and answers of judges that came before are not asked again. Of a part whose file is there, what has an
    error is done again.
    """

    job: Job
    folder: Folder
    scratch: Path
    carry: Carry = carry_out
    _slicer: Slicer = field(default_factory=Slicer, init=False)

    def work_on(self, part: Part, share: Share) -> Worked:
        """Work on a part, and write its file when it is done.

        Raises:
            UsageError: the suite is wrong.
        """
        try:
            return self._work_on(part, share)
        except OSError as error:
            place = f"{self.scratch} or {self.folder.place}"
            why = f"{part}, cannot be written in {place}: {error.strerror or error}"
        except StoreError as error:
            why = str(error).replace(" and run again with --resume", "")
        except MemoryError:
            calls, cost = share.max_calls or 0, share.max_cost or 0.0  # nobody knows what was spent, so all of it
            return Worked(part.name, False, calls=calls, cost=cost, broken="there is not enough memory for it")
        return Worked(part.name, is_done=False, why=why, is_over=True)

    def _work_on(self, part: Part, share: Share) -> Worked:
        self.scratch.mkdir(parents=True, exist_ok=True)
        files = _Files(self.scratch, part)
        try:
            if not files.rows.exists():
                self._slicer.write(part, files.rows)
        except UsageError as error:
            return Worked(part.name, is_done=False, broken=str(error))
        if not files.known_problems() and (problems := self._earlier_problems(part)):
            files.keep(problems)
        try:
            worked = self._run(part, files.ready(), share, files.known_problems())
        except UsageError:
            problems = [] if files.known_problems() else _sort_out(self.job.suite_on(files.rows, share.workers), part)
            if not problems:
                raise
            files.keep(problems)
            worked = self._run(part, files.ready(), share, problems)
        if worked.is_done:
            files.remove()
        return worked

    def _run(self, part: Part, rows: Path, share: Share, problems: Sequence[RowProblem]) -> Worked:
        """Hold and grade the conversations of a part, as far as its share goes."""
        about = About(file=part.file.place, problems=list(problems))
        if len(problems) == part.piece.rows:
            return self._written(part, about, (), Worked(part.name, is_done=True, problems=len(problems)))
        with Store.open(self.scratch / f"{part.name}.db") as store:
            begun = next(iter(store.runs(1)), None) or self._restored(part, store)
            work = self._begin(part, rows, share, store, begun)
            result = None if work is None else self.carry(work)
            spent = Worked(part.name, is_done=True, problems=len(problems))
            if work is not None:
                spent = replace(spent, calls=work.budget.calls, cost=work.budget.cost)
            if result is not None and result.stopped_by is not None:
                return replace(spent, is_done=False, why=result.stopped_by, kept=store.counts(result.run.id)[0])
            run = store.run(self.job.run_id)
            grading = store.grading(run.id)
            errors = store.error_count(grading.id)
            about = about.model_copy(update={"run": run, "grading": grading, "errors": errors})
            spent = replace(spent, errors=errors)
            placed = _moved(Reader(store.database, run.id).entries(), part.position)
            return self._written(part, about, placed, spent)

    def _begin(self, part: Part, rows: Path, share: Share, store: Store, run: Run | None) -> ExperimentRun | None:
        """Return the run of a part, None where it is finished."""
        if run is not None and run.status == "finished" and not part.again:
            return None
        options = RunOptions(
            trials=self.job.trials, cache=self.job.cache, max_calls=share.max_calls, max_cost=share.max_cost
        )
        suite = self.job.suite_on(rows, share.workers)
        run_id = None if run else self.job.run_id
        return suite_run(suite, options, store=store, resumed=run, retries_errors=part.again, run_id=run_id)

    def _earlier_problems(self, part: Part) -> list[RowProblem]:
        """Return the rows that are not conversations, as the file of a part says that is done again."""
        if not part.again:
            return []
        with read_part(self.folder, part.name) as found:
            return found.about.problems

    def _restored(self, part: Part, store: Store) -> Run | None:
        """Put the conversations in the file of a part into its store, and return their run; None where it is new."""
        if not part.again:
            return None
        with read_part(self.folder, part.name) as found:
            run, grading = found.about.run, found.about.grading
            if run is None or grading is None:
                return None
            entries = _moved(found.entries(), -part.position)
            put_run(store.database, run_values(run), [grading_values(grading)], entries, lambda done: None)
        return store.run(run.id)

    def _written(self, part: Part, about: About, entries: Iterator[Entry] | tuple[()], worked: Worked) -> Worked:
        """Write the file of a part, and put it into the folder of the results."""
        graders = list(self.job.spec["graders"] if about.grading is None else about.grading.fingerprints)
        beside = self.scratch / f"{part.name}.done"
        number = write_part(beside, about, entries, graders)
        self.folder.put(f"{part.name}{SUFFIX}", beside)
        beside.unlink()
        return replace(worked, conversations=number)

    def close(self) -> None:
        """Close what stayed open; an empty scratch folder is removed."""
        self._slicer.close()
        if self.scratch.is_dir() and not any(self.scratch.iterdir()):
            self.scratch.rmdir()


def done_parts(job: Job, folder: Folder) -> set[str]:
    """Return the names of the parts whose files are there."""
    there = folder.names()
    return {part.name for part in job.parts if f"{part.name}{SUFFIX}" in there}


def worked_before(folder: Folder, name: str) -> Worked:
    """Return what came of a part whose file is there."""
    with read_part(folder, name) as found:
        about = found.about
        return Worked(
            name,
            is_done=True,
            conversations=found.conversations,
            errors=about.errors,
            problems=len(about.problems),
        )


def _moved(entries: Iterator[Entry], by: int) -> Iterator[Entry]:
    """Yield conversations with other places in the plan: those of a part begin with 0, those of the whole elsewhere."""
    for entry in entries:
        assert entry.attempt is not None
        yield replace(entry, attempt=entry.attempt._replace(position=entry.attempt.position + by))


def _sort_out(suite: Suite, part: Part) -> list[RowProblem]:
    """Return the rows of a part that are not conversations, with why."""
    found = [(one.line, one.message) for one in unusable(suite)]
    return [RowProblem(row=part.piece.first + line, message=why) for line, why in found if line is not None]


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a part while it is worked on: its rows, why some cannot be used, and the rows without these."""

    scratch: Path
    part: Part

    @property
    def rows(self) -> Path:
        """All its rows."""
        return self._path(self.part.file.suffix)

    def known_problems(self) -> list[RowProblem]:
        """Return the problems that were kept."""
        kept = self._path(".problems")
        return [RowProblem.model_validate(row) for row in json.loads(kept.read_text("utf-8"))] if kept.exists() else []

    def keep(self, problems: Sequence[RowProblem]) -> None:
        """Keep problems of rows, whole or not at all."""
        beside = self._path(".problems.part")
        beside.write_text(json.dumps([problem.model_dump() for problem in problems]), "utf-8")
        os.replace(beside, self._path(".problems"))

    def ready(self) -> Path:
        """Return the file of the rows that can be used, as far as is known."""
        problems = self.known_problems()
        if not problems:
            return self.rows
        usable = self._path(f".usable{self.part.file.suffix}")
        if not usable.exists():
            write_without(self.rows, {problem.row - self.part.piece.first for problem in problems}, usable)
        return usable

    def remove(self) -> None:
        """Remove all of them, and the store of the part."""
        for path in self.scratch.glob(f"{self.part.name}.*"):
            path.unlink()

    def _path(self, ending: str) -> Path:
        return self.scratch / f"{self.part.name}{ending}"
