"""`ExperimentRun`: runs an experiment from beginning to end, or continues it."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vivavoce.errors import Deferred, UsageError
from vivavoce.lazy_names import lazy
from vivavoce.models.model import new_attempt
from vivavoce.records.run import (
    SAMPLING,
    Attempt,
    AttemptEnded,
    AttemptKey,
    AttemptStarted,
    ErrorRow,
    Grading,
    Run,
    RunEnded,
    RunStarted,
    Status,
    TurnEnded,
)
from vivavoce.records.score import CANCELLED, TESTER_ERROR
from vivavoce.records.trajectory import Turn
from vivavoce.run.attempt import RECORDED, Drivers, Grades, Task, hold, tasks_of
from vivavoce.run.corrected import corrected
from vivavoce.run.drivers import driver_on
from vivavoce.run.execution import Execution, ended
from vivavoce.run.experiment import Experiment, Limits
from vivavoce.run.rounds import Rounds, Schedule
from vivavoce.run.summary import RunResult
from vivavoce.run.workers import INTERRUPTED, WorkerPool
from vivavoce.store.runs.writer import OutcomeWriter
from vivavoce.store.store import Store
from vivavoce.targets.dialogue import TargetChannel, open_channel
from vivavoce.targets.target import Target
from vivavoce.wire.own_traffic import of_run

if TYPE_CHECKING:  # only a run in batches loads them
    from vivavoce.run.batches import BatchRounds

HOLDING = ("driver", "target", "targets", "tester", "setup_script", "recording")
"""The parts of a suite that decide how a conversation goes, besides its sample."""


@dataclass(slots=True)
class Reuse:
    """The conversations of an earlier run."""

    store: Store
    run: Run
    _ahead: dict[AttemptKey, Attempt] | None = field(default=None, init=False)

    def fits(self, experiment: Experiment) -> bool:
        """Return whether an experiment holds its conversations as that run did."""
        description, then = experiment.description, self.run
        return (
            all(description.spec.get(part) == then.spec.get(part) for part in HOLDING)
            and description.code == then.options.get("code")
            and experiment.tester_fingerprint == then.options.get("tester", "")
        )

    def conversation(self, key: AttemptKey) -> Attempt | None:
        """Return a conversation that went through, None if there is none or the tester or its judge spoiled it."""
        stored = self.store.attempts(self.run.id, sample_id=key.sample_id)
        usable = (attempt for attempt in stored if attempt.failure is None and not _is_spoiled(attempt))
        return next((attempt for attempt in usable if attempt.key == key), None)

    def unchanged(self, key: AttemptKey, sample: str, position: int) -> Attempt | None:
        """Return a conversation about the same row that went through, at its place in the new plan, once.

        All are read at the first call, which takes a tenth of the time of a query for each.
        """
        if self._ahead is None:
            stored = self.store.attempts(self.run.id)
            self._ahead = {one.key: one for one in stored if one.failure is None}
        found = self._ahead.pop(key, None)
        return None if found is None or found.sample != sample else found.model_copy(update={"position": position})


def _is_spoiled(attempt: Attempt) -> bool:
    """Say whether a test has to be held again, because its tester or its judge is to blame for its result."""
    test = attempt.trajectory.test
    return test is not None and not test.target_passed and test.blame in ("tester", "judge")


_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def revision_of(folder: Path) -> str | None:
    """Return the commit that is checked out where a folder is, None outside git or where it cannot be told.

    Nothing is executed: only the files of git are read, which know nothing of changes that are not committed.
    Source: gitrepository-layout(5), `HEAD`, `packed-refs`, `commondir`.
    """
    try:
        return _commit(folder.absolute())
    except (OSError, UnicodeError):  # no permission, no text: the commit is not known, and a run needs none
        return None


def _commit(folder: Path) -> str | None:
    place = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if place is None:
        return None
    if place.is_file():
        place = place.parent / place.read_text("utf-8").removeprefix("gitdir:").strip()
    head = (place / "HEAD").read_text("utf-8").strip()
    if not head.startswith("ref:"):
        return _whole(head)
    name, common = head.removeprefix("ref:").strip(), place / "commondir"
    shared = place / common.read_text("utf-8").strip() if common.is_file() else place
    for home in (place, shared):
        if (home / name).is_file():
            return _whole((home / name).read_text("utf-8").strip())
    packed = shared / "packed-refs"
    lines = packed.read_text("utf-8").splitlines() if packed.is_file() else []
    return next((_whole(line.split(" ")[0]) for line in lines if line.endswith(f" {name}")), None)


def _whole(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


_OF_REPLIES = frozenset((TESTER_ERROR, "inconclusive", "evidence", "format"))
"""The kinds of errors that replies of a tester or a judge lead to; after others, a cache keeps no reply."""


class Changed(UsageError):
    """A run cannot be resumed, for something that decides its results is not what it was."""


@dataclass
class ExperimentRun(Execution):
    """One run of an experiment: hold the conversations, grade them, store and summarise the results.

    `resumed` is a run to continue, `run_id` the id of a new one, which is made up where none is given. With
    `retries_errors`, attempts with an error are retried as well; a complete conversation is only graded again. Replaced
    attempts stay in the store. `partial_of` is the run of which a new run repeats only a part; with `reuses_unchanged`
    the conversations that have not changed since that run are graded again, and not held. A special kind of run says by
    `marks`, stored with its options, and by its `title` what it is. `begun` is the record of the run as soon as there
    is one.
    """

    resumed: Run | None = None
    retries_errors: bool = False
    partial_of: Run | None = None
    reuses_unchanged: bool = False
    run_id: str | None = None
    marks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    title: str | None = None
    begun: Run | None = field(default=None, init=False)
    _reuse: Reuse | None = field(default=None, init=False)
    _schedule: Schedule | None = field(default=None, init=False)
    _batches: BatchRounds | None = field(default=None, init=False)
    _graded: set[AttemptKey] = field(default_factory=set[AttemptKey], init=False)
    _misjudged: set[AttemptKey] = field(default_factory=set[AttemptKey], init=False)
    _retry: str = field(default_factory=lambda: f"retry {secrets.token_hex(4)}", init=False)
    _deferred: int = field(default=0, init=False)

    async def work(self, experiment: Experiment) -> RunResult:
        """Execute an experiment, which the caller closes.

        Raises:
            UsageError: the set-up failed, or something that decides the results of a resumed run has changed since it
            started.
        """
        if experiment.set_up is not None:
            await experiment.set_up()
        run_id = self.resumed.id if self.resumed is not None else self.run_id or new_id(experiment.name)
        with self.store.claimed(run_id):
            return await self._run(experiment, run_id)

    async def _run(self, experiment: Experiment, run_id: str) -> RunResult:
        scoring = experiment.scoring
        self._reuse = self._reused(experiment)
        run, grading = self._records(experiment, run_id)
        self.begun = run
        cancelled = self.store.cancelled(run.id) if self.resumed else set[AttemptKey]()
        done = self.store.done(run.id) - cancelled if self.resumed else set[AttemptKey]()
        replaces = self.retries_errors or bool(cancelled)
        if self.retries_errors:
            errors = list(self.store.errors(grading.id))
            done -= {row.key for row in errors}
            if not (self.options.batch or self.options.replay):
                self._misjudged = {row.key for row in errors if _rests_on_replies(row)}
        unlimited = Grades(scoring.graders, scoring.composer)
        at_a_time = _workers(experiment, unlimited)
        grades = unlimited.in_places(at_a_time)
        self.workers = workers = WorkerPool(at_a_time)
        await self.tell(RunStarted(run, grading, experiment.planned, len(done)))
        drivers = self._drivers(experiment)
        self._schedule = schedule = self.schedule(experiment, drivers, done, grading)
        if experiment.batches is not None:
            self._batches = experiment.batches.rounds(self.store, run.id, self.tell)
        try:
            async with self.store.writer(run.id, grading.id, scoring.fingerprints, replaces=replaces) as writer:
                make = self._attempt if schedule is None else self._attempt_of_schedule
                attempt = partial(make, workers, grades, writer)
                if self._batches is not None:
                    await self._in_rounds(self._batches, partial(tasks_of, experiment, drivers), done, attempt)
                else:
                    tasks = tasks_of(experiment, drivers, done) if schedule is None else schedule.tasks()
                    await workers.run(tasks, attempt)
        except asyncio.CancelledError:
            await self._finish(experiment, run, grading, workers.stopped_by or INTERRUPTED)
            raise
        return await self._finish(experiment, run, grading, workers.stopped_by)

    def schedule(
        self, experiment: Experiment, drivers: Drivers, done: set[AttemptKey], grading: Grading
    ) -> Schedule | None:
        """Return what decides which attempts are needed, None where all that are planned are."""
        stopping = experiment.scoring.stopping
        if stopping is None:
            return None
        return Rounds(experiment, stopping, drivers, done, self.store.scores(grading.id))

    def stop(self) -> int:
        """Begin nothing more, wait for no batch, and finish what is in flight; a second time, drop that too."""
        if self._batches is not None:
            self._batches.stop()
        return super().stop()

    async def _in_rounds(
        self,
        batches: BatchRounds,
        tasks: Callable[[set[AttemptKey]], Iterator[Task] | AsyncIterator[Task]],
        done: set[AttemptKey],
        attempt: Callable[[Task], Awaitable[None]],
    ) -> None:
        """Grade what can be, and ask in batches for what is missing, until nothing is."""
        assert self.workers is not None
        self._graded = done
        try:
            await batches.begin(fresh=self.retries_errors)
            while self.workers.stopped_by is None:
                batches.questions.begin_pass()
                self._deferred = 0
                await self.workers.run(tasks(done), attempt)
                batches.questions.keep_paid()
                if self.workers.stopped_by is not None:
                    return
                if not self._deferred:
                    batches.finish()
                    return
                await batches.next()
        except lazy("vivavoce.run.batches:BatchesStopped") as why:
            self.workers.stopped_by = self.workers.stopped_by or str(why)
        finally:
            await batches.close()

    async def _attempt_of_schedule(
        self, workers: WorkerPool, grades: Grades, writer: OutcomeWriter, task: Task
    ) -> None:
        assert self._schedule is not None
        try:
            await self._attempt(workers, grades, writer, task)
        finally:
            self._schedule.end()

    async def _attempt(self, workers: WorkerPool, grades: Grades, writer: OutcomeWriter, task: Task) -> None:
        with ExitStack() as kept:
            if task.key in self._misjudged:  # the cache would repeat the replies that led to the error
                kept.enter_context(new_attempt(self._retry))
            attempt = await self._hold(workers, grades, task, kept)
            if attempt is None:
                return
            cancelled = attempt.failure is not None and attempt.failure.kind == CANCELLED
            led = attempt.trajectory.test is not None
            sample = task.sample.with_messages(attempt.trajectory.messages) if led else task.sample
            try:
                with _UNBATCHED if self._batches is None else self._batches.questions.conversation():
                    outcome = grades.ungraded(attempt) if cancelled else await grades.grade(attempt, sample)
            except Deferred:
                self._deferred += 1
                return
        await writer.put(outcome)
        self._graded.add(task.key)
        if self._schedule is not None:
            self._schedule.put(outcome)
        await self.tell(AttemptEnded(outcome))
        if cancelled:
            raise asyncio.CancelledError

    async def _hold(self, workers: WorkerPool, grades: Grades, task: Task, kept_calls: ExitStack) -> Attempt | None:
        """Hold a conversation, with its calls and those of its judges reserved; None if the run was stopped."""

        async def on_turn(turn: Turn) -> None:
            await self.tell(TurnEnded(task.key, turn))

        is_counted = self.budget.limits_calls and not (self.options.replay or self.options.batch)
        verdicts = grades.verdicts(task.sample) if is_counted else 0
        kept = self._kept(task)
        if kept is not None or task.driver is None:
            if verdicts:
                kept_calls.enter_context(self.budget.set_aside(verdicts))
            return await hold(task, on_turn) if kept is None else kept
        conversations = task.driver.channel.conversations
        with workers.waiting():
            await conversations.acquire()
        try:
            if workers.stopped_by is not None:
                return None
            kept_calls.enter_context(self.budget.set_aside(task.driver.calls(task.sample) + verdicts))
            await self.tell(AttemptStarted(task.key))
            with of_run("" if self.begun is None else self.begun.id):
                return await hold(task, on_turn)
        finally:
            conversations.release()

    @property
    def _repeats_a_part(self) -> bool:
        """Whether a new run is partial; one that reuses conversations is whole where all are held again."""
        return self._reuse is not None or not self.reuses_unchanged

    def _reused(self, experiment: Experiment) -> Reuse | None:
        """Return the conversations that need not be held again, None if there are none."""
        if self.resumed is not None:
            return Reuse(self.store, self.resumed) if self.retries_errors else None
        if self.partial_of is None or not self.reuses_unchanged:
            return None
        earlier = Reuse(self.store, self.partial_of)
        return earlier if earlier.fits(experiment) else None

    def _kept(self, task: Task) -> Attempt | None:
        """Return the conversation of a task if it need not be held again: only a grader failed, or nothing changed."""
        if self._reuse is None:
            return None
        if self.resumed is not None:
            return self._reuse.conversation(task.key)
        if task.driver is None:
            return None
        return self._reuse.unchanged(task.key, task.sample.row_text(), task.position)

    def _drivers(self, experiment: Experiment) -> Drivers:
        """Return the driver for each target."""
        driver = experiment.driver
        if driver is None:
            return {RECORDED: None}
        return {
            target.name: driver_on(driver, self._channel(target, experiment.limits_of(target)), experiment.held)
            for target in experiment.targets
        }

    def _channel(self, target: Target, limits: Limits) -> TargetChannel:
        return open_channel(
            target, limit=limits.concurrency, budget=self.budget, timeout=limits.timeout, retries=limits.retries
        )

    def _records(self, experiment: Experiment, run_id: str) -> tuple[Run, Grading]:
        if self.resumed is not None:
            return self._records_again(self.resumed, experiment)
        now, description, tester = time.time(), experiment.description, experiment.tester_fingerprint
        revision, sampling = revision_of(description.base), experiment.samples.sampling
        run = Run(
            id=run_id,
            suite=experiment.name,
            spec=description.spec,
            base=str(description.base.absolute()),
            options={
                **self.options.model_dump(exclude_none=True),
                "suite": description.source,
                "dataset": experiment.samples.dataset,
                "code": description.code,
                **({"tester": tester} if tester else {}),
                **({"revision": revision} if revision else {}),
                **self.marks,
                **({SAMPLING: sampling.model_dump()} if sampling else {}),
                **({"planned": experiment.planned} if experiment.planned is not None else {}),
            },
            started_at=now,
            version=version("vivavoce"),
            partial_of=self.partial_of.id if self.partial_of and self._repeats_a_part else None,
            title=self.title,
        )
        prints = experiment.scoring.fingerprints
        grading = Grading(id=f"{run.id}-g1", run_id=run.id, spec=description.spec, fingerprints=prints, created_at=now)
        self.store.add_run(run, grading)
        return run, grading

    def _records_again(self, run: Run, experiment: Experiment) -> tuple[Run, Grading]:
        """Return the records of a resumed run.

        Raises:
            Changed: something that decides its results has changed since it started.
        """
        grading = next(iter(self.store.gradings(run.id)), None)
        if grading is None:
            raise Changed(f"cannot resume {run.id}: it was stopped before it started; start a new run")
        changed = _change(run, grading, experiment)
        if changed is not None:
            raise Changed(f"cannot resume {run.id}: {changed} has changed since; start a new run")
        limit = self.options.max_errors
        options = run.options if limit is None else {**run.options, "max_errors": limit}
        run = run.model_copy(update={"status": "running", "finished_at": None, "options": options})
        self.store.update_run(run)
        return run, grading

    async def _finish(self, experiment: Experiment, run: Run, grading: Grading, stopped_by: str | None) -> RunResult:
        summary, planned = self.summary(grading, experiment.scoring), experiment.planned
        if stopped_by is None and self._schedule is None and planned is not None and summary.attempts < planned:
            stopped_by = f"{planned - summary.attempts} of {planned} conversations were not held"
        status: Status = "finished" if stopped_by is None else "interrupted"
        if stopped_by is not None:
            summary = summary.stopped_by(stopped_by, planned)
        now = time.time()
        grading = ended(grading, summary, now)
        run = run.model_copy(update={"status": status, "finished_at": now})
        self.store.update_grading(grading)
        self.store.update_run(run)
        await self.tell(RunEnded(run, grading))
        shown = corrected(summary, self.store, run, grading)
        notes = () if self._batches is None else self._batches.notes
        return RunResult(run, grading, shown, self.store.place, stopped_by, notes)


_UNBATCHED = nullcontext()


def _rests_on_replies(error: ErrorRow) -> bool:
    """Say whether a reply of the tester or of a judge led to an error, rather than the lack of one."""
    failure = error.failure
    return failure is not None and failure.blame in ("tester", "judge") and failure.kind in _OF_REPLIES


def new_id(name: str, end: str | None = None) -> str:
    """Return an id for a run of an experiment of that name; `end` makes it unique, or chance where it is not given."""
    start = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "run"
    return f"{start}-{end or secrets.token_hex(3)}"


def _change(run: Run, grading: Grading, experiment: Experiment) -> str | None:
    """Return what has changed in an experiment since its run started, None if nothing has."""
    if experiment.description.code != run.code_hash:
        return "the code of its target"
    if experiment.tester_fingerprint != run.options.get("tester", ""):
        return "its tester"
    if experiment.samples.dataset != run.option("dataset"):
        return f"the dataset {experiment.samples.place}"
    if experiment.samples.sampling != run.sampling:
        return "what is drawn"
    then, now = grading.fingerprints, experiment.scoring.fingerprints
    changed = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return f"'{changed[0]}'" if changed else None


def _workers(experiment: Experiment, grades: Grades) -> int:
    """Return how many conversations to work on at a time: enough to keep the slots of targets and judges busy."""
    if experiment.driver is not None:
        slots = 3 * sum(experiment.limits_of(target).concurrency for target in experiment.targets)
        return slots if experiment.planned is None else max(1, min(slots, experiment.planned))
    concurrency = experiment.limits.concurrency
    return 1 if grades.at_once else concurrency + concurrency // 2
