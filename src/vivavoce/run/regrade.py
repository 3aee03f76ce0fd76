"""Grading a run again: the conversations are read from the store, no target is called, the old scores stay."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.messages import describe
from vivavoce.pacing.budget import Budget
from vivavoce.records.events import AttemptEnded, Event, Listener, RunEnded, RunStarted
from vivavoce.records.run import Attempt, AttemptKey, Grading, Run
from vivavoce.run.attempt import Grades
from vivavoce.run.check import prepare
from vivavoce.run.opening import stored_suite
from vivavoce.run.plan import RunOptions, plan_of
from vivavoce.run.result import RunResult
from vivavoce.run.suite_run import dump_spec, ended, kept_answers, noting, sum_up
from vivavoce.run.workers import WorkerPool
from vivavoce.samples.rows import read_samples
from vivavoce.samples.sample import Sample
from vivavoce.store.store import Store
from vivavoce.suites.build import Builder, Scoring
from vivavoce.suites.dataset import dataset_source
from vivavoce.suites.judges import JudgeOpener
from vivavoce.suites.load import Suite, load_suite

Truths = dict[tuple[str, int], str]
"""Rows as JSON text, by id and, for recorded conversations, trial."""


@dataclass
class Regrade:
    """One more set of scores of a finished run; `stop` ends it early, and then it counts for nothing.

    `path` brings another suite with other graders, and other truths for samples of the same id; without it the run's
    own suite is used, with its grading functions as they are now. Of the options, those about judges count. `resumed`
    names a set of scores that was stopped, to go on with.

    Raises:
        UsageError: there is no such run, or it is not finished.
    """

    store: Store
    name: str
    path: Path | None = None
    listeners: Sequence[Listener] = ()
    options: RunOptions = field(default_factory=RunOptions)
    workers: WorkerPool = field(default_factory=lambda: WorkerPool(1))
    resumed: str | None = None

    @cached_property
    def run(self) -> Run:
        """The run."""
        found = self.store.run(self.name)
        if found.status != "finished":
            raise UsageError(f"run {found.id} is not finished; first go on with: viva run --resume {found.id}")
        return found

    @cached_property
    def suite(self) -> Suite:
        """The suite with the graders."""
        return load_suite(self.path) if self.path else stored_suite(self.run)

    @cached_property
    def budget(self) -> Budget:
        """The calls that it may make, and what they may cost."""
        return Budget(max_calls=self.options.max_calls, max_cost=self.options.max_cost)

    def stop(self) -> int:
        """Grade no further; a second time, drop what is in work. Returns how many are."""
        self.workers.stop()
        return self.workers.at_work

    async def execute(self) -> RunResult:
        """Grade every conversation and return the new set of scores.

        Raises:
            UsageError: the suite is wrong, a sample of it asks something else than the run did, or another process is
                at work on the run.
        """
        concurrency = self.suite.spec.max_concurrent
        async with kept_answers(self.store, cache=self.options.cache or self.options.replay) as answers:
            judges = JudgeOpener(self.budget, answers, self.options.replay, concurrency)
            tester = str(self.run.options.get("tester", ""))
            if self.path is None:
                scoring, truths = Builder(self.suite, judges.open, tester=tester).scoring(), Truths()
            else:
                scoring, _ = prepare(self.suite, plan_of(self.suite, RunOptions()), judges, tester)
                truths = _truths(self.suite)
            try:
                for attempt in self.store.attempts(self.run.id):
                    sample_of(attempt, truths)
                with self.store.claimed(self.run.id):
                    return noting(await self._grade(scoring, truths), answers)
            finally:
                for opened in scoring.opened:
                    await opened.close()

    async def _grade(self, scoring: Scoring, truths: Truths) -> RunResult:
        run, store = self.run, self.store
        grading = self._begun(scoring)
        done = {row.key for row in store.scores(grading.id)} if self.resumed else set[AttemptKey]()
        planned, _ = store.counts(run.id)
        await self._tell(RunStarted(run, grading, planned, len(done)))
        grades = Grades(scoring.graders, scoring.composer)
        self.workers = WorkerPool(1 if grades.at_once else 2 * self.suite.spec.max_concurrent)
        async with store.writer(run.id, grading.id, scoring.fingerprints) as writer:

            async def grade(attempt: Attempt) -> None:
                outcome = await grades.grade(attempt, sample_of(attempt, truths))
                await writer.put_scores(attempt.key, outcome.scores, outcome.reward)
                await self._tell(AttemptEnded(outcome))

            await self.workers.run((one for one in store.attempts(run.id) if one.key not in done), grade)
        summary = sum_up(store, grading, scoring, self.options.max_errors)
        if self.workers.stopped_by is None:
            grading = ended(grading, summary, time.time())
            store.update_grading(grading)
        await self._tell(RunEnded(run, grading))
        return RunResult(run, grading, summary, store.place, self.workers.stopped_by, self.suite.notes)

    def _begun(self, scoring: Scoring) -> Grading:
        """Return a new set of scores, or the one that goes on.

        Raises:
            UsageError: the graders have changed since it was begun.
        """
        if self.resumed is not None:
            begun = self.store.grading(self.run.id, self.resumed)
            if begun.fingerprints != scoring.fingerprints:
                raise UsageError(f"cannot go on with {begun.id}: its graders have changed since; grade again")
            return begun
        begun = Grading(
            id=f"{self.run.id}-g{len(self.store.gradings(self.run.id)) + 1}",
            run_id=self.run.id,
            spec=dump_spec(self.suite.spec),
            fingerprints=scoring.fingerprints,
            created_at=time.time(),
        )
        self.store.add_grading(begun)
        return begun

    async def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            await listener.on(event)


def _truths(suite: Suite) -> Truths:
    """Return the rows of a dataset, without recorded conversations."""
    replays = suite.spec.driver == "replay"
    rows = read_samples(dataset_source(suite), fields=suite.spec.dataset.fields, base=suite.base)
    return {
        (sample.id, (sample.trial or 0) if replays else 0): sample.row_text(("messages", "trial")) for sample in rows
    }


def sample_of(attempt: Attempt, truths: Truths) -> Sample:
    """Return the sample of an attempt; `truths` replaces rows, where they ask the same.

    Raises:
        UsageError: the row asks something else than was asked, or does not fit the conversation.
    """
    stored = json.loads(attempt.sample)
    row = json.loads(truths.get(_key(attempt.key, stored), attempt.sample))
    if row.get("input") != stored.get("input"):
        raise UsageError(f"sample '{attempt.key.sample_id}' asks something else than the run did; run the suite again")
    if "input" not in row:
        row["messages"] = attempt.trajectory.messages
    try:
        return Sample.model_validate(row)
    except ValidationError as error:
        raise UsageError(f"sample '{attempt.key.sample_id}': {describe(error)}") from error


def _key(key: AttemptKey, stored: dict[str, object]) -> tuple[str, int]:
    """Return where the truth of an attempt stands: the trials of what was asked share one row."""
    return (key.sample_id, 0 if "input" in stored else key.trial)
