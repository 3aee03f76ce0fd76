"""All parts of a job as one run of a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.features.parts.job import Job, read_job
from vivavoce.features.parts.part_file import About, read_part
from vivavoce.features.parts.work import done_parts
from vivavoce.files.places import Folder
from vivavoce.pacing.limits import Budget
from vivavoce.pacing.loops import run as run_loop
from vivavoce.records.run import IN_PARTS, AttemptKey, Grading, Run, Status
from vivavoce.run.corrected import corrected
from vivavoce.run.execution import Execution, ended
from vivavoce.run.experiment import Experiment
from vivavoce.run.options import RunOptions
from vivavoce.run.summary import RunResult
from vivavoce.store.maintenance.copying import put_run
from vivavoce.store.replies import ReplyStore
from vivavoce.store.runs.rows import Entry, grading_values, run_values
from vivavoce.store.store import Store
from vivavoce.suites.experiment import scoring_of
from vivavoce.suites.judges import JudgeOpener

Tell = Callable[[int, int], None]
"""Called with how many conversations are in the store, and how many there are."""


def merge(folder: Folder, store: Store, tell: Tell, *, max_errors: str | None = None) -> RunResult:
    """Put the parts of a folder into a store as one run, and return it.

    Where the run is there already, what is new is added, and conversations whose errors are gone are replaced. As long
    as parts are missing, it is interrupted.

    Raises:
        UsageError: the folder has no job, no part with a conversation, parts that were graded otherwise, or one
            conversation twice.
    """
    job = read_job(folder)
    if job is None:
        raise UsageError(f"{folder.place} has no parts of a run; name the folder that was given as --parts")
    names = sorted(done_parts(job, folder))
    left, count = len(job.parts) - len(names), _check_once(folder, names)
    planned = job.rows * job.each if left else count
    run, grading = _records(job, folder, names, planned)
    if max_errors is not None:
        run = run.model_copy(update={"options": {**run.options, "max_errors": max_errors}})
    with store.claimed(run.id):
        sets = [grading_values(grading)]
        replaced = _errors_gone(folder, names, store, run, grading)
        put_run(
            store.database, run_values(run), sets, _entries(folder, names), lambda done: tell(done, count), replaced
        )
    build = partial(_build, run, store)
    options = RunOptions(max_errors=max_errors)
    ending = _Ending(build, store, options, run=run, grading=grading, left=left, planned=planned)
    return run_loop(ending.execute())


def rows_left_out(folder: Folder) -> int:
    """Return how many rows of the files are not conversations, in the parts that are done."""
    job = read_job(folder)
    return 0 if job is None else sum(len(about.problems) for about in _known(folder, sorted(done_parts(job, folder))))


def _known(folder: Folder, names: Sequence[str]) -> list[About]:
    abouts: list[About] = []
    for name in names:
        with read_part(folder, name) as part:
            abouts.append(part.about)
    return abouts


def _records(job: Job, folder: Folder, names: Sequence[str], planned: int) -> tuple[Run, Grading]:
    """Return the record of the run and of its scores, as they are before they end."""
    prints: dict[str, str] = {}
    graders: dict[str, Any] = {}
    first: tuple[Run, Grading] | None = None
    for name, about in zip(names, _known(folder, names), strict=True):
        if about.run is None or about.grading is None:
            continue
        first = first or (about.run, about.grading)
        own = about.grading.fingerprints
        if any(prints.get(grader, own[grader]) != own[grader] for grader in own):
            raise UsageError(f"{folder.place}: {name} was graded by different graders than the earlier parts")
        prints |= own
        graders |= about.run.spec["graders"]
    if first is None:
        done = f"{len(names)} of its {len(job.parts)} parts are done" if names else "none of its parts is done"
        raise UsageError(f"{folder.place} has no conversation: {done}")
    return _begun(job, folder, *first, {**graders, **job.spec["graders"]}, prints, planned)


def _begun(
    job: Job,
    folder: Folder,
    run: Run,
    grading: Grading,
    graders: dict[str, Any],
    prints: dict[str, str],
    planned: int,
) -> tuple[Run, Grading]:
    """Return the records of a part as those of the whole."""
    spec = {**job.spec, "graders": graders}
    options = {name: value for name, value in run.options.items() if name not in ("max_calls", "max_cost")}
    options |= {"dataset": job.dataset, IN_PARTS: folder.place, "planned": planned}
    begun = {"started_at": job.created_at, "finished_at": None, "status": "running"}
    fresh = {"created_at": job.created_at, "finished_at": None, "verdict": None, "summary": None}
    return (
        run.model_copy(update={**begun, "spec": spec, "options": options}),
        grading.model_copy(update={**fresh, "spec": spec, "fingerprints": prints}),
    )


def _check_once(folder: Folder, names: Sequence[str]) -> int:
    """Return how many conversations the parts have, each of which there is once.

    Raises:
        UsageError: two have the same id, target and trial.
    """
    places: dict[AttemptKey, int] = {}
    for at, name in enumerate(names):
        with read_part(folder, name) as part:
            for key, _, _ in part.scores():
                first = places.setdefault(key, at)
                if first != at:
                    twice = f"'{key.sample_id}' is in {names[first]} and in {name}"
                    raise UsageError(f"{twice}: each row of a dataset needs its own id")
    return len(places)


def _errors_gone(folder: Folder, names: Sequence[str], store: Store, run: Run, grading: Grading) -> set[AttemptKey]:
    """Return the conversations that have an error in the store, and none in the parts."""
    there = any(one.id == grading.id for one in store.gradings(run.id))
    wrong = {row.key for row in store.errors(grading.id)} if there else set[AttemptKey]()
    found = set[AttemptKey]()
    for name in names if wrong else ():
        with read_part(folder, name) as part:
            for key, failure, rows in part.scores():
                if key in wrong and failure is None and all(row.state != "error" for row in rows):
                    found.add(key)
    return found


def _entries(folder: Folder, names: Sequence[str]) -> Iterator[Entry]:
    for name in names:
        with read_part(folder, name) as part:
            yield from part.entries()


def _build(run: Run, store: Store, budget: Budget, answers: ReplyStore | None) -> Experiment:
    return scoring_of(run, JudgeOpener(budget, answers, keys_needed=False), store)


@dataclass
class _Ending(Execution):
    """The end of a run whose conversations are in the store: its summary and its verdict."""

    run: Run = field(kw_only=True)
    grading: Grading = field(kw_only=True)
    left: int = field(kw_only=True)
    planned: int = field(kw_only=True)

    async def work(self, experiment: Experiment) -> RunResult:
        """Summarise the run, and return it."""
        summary, why = self.summary(self.grading, experiment.scoring), None
        status: Status = "finished"
        if self.left:
            status, why = "interrupted", f"{self.left} part{'s' * (self.left != 1)} left to do"
            summary = summary.stopped_by(why, self.planned)
        now = time.time()
        grading = ended(self.grading, summary, now)
        run = self.run.model_copy(update={"status": status, "finished_at": now})
        self.store.update_grading(grading)
        self.store.update_run(run)
        return RunResult(run, grading, corrected(summary, self.store, run, grading), self.store.place, why)
