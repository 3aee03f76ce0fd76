"""Grading a run again: the conversations are read from the store, no target is called, the old scores stay."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.messages import describe
from vivavoce.records.run import Attempt, AttemptEnded, AttemptKey, Grading, Run, RunEnded, RunStarted
from vivavoce.run.attempt import Grades
from vivavoce.run.corrected import corrected
from vivavoce.run.execution import Execution, ended
from vivavoce.run.experiment import Experiment
from vivavoce.run.summary import RunResult
from vivavoce.run.workers import WorkerPool
from vivavoce.samples.sample import Sample

Truths = dict[tuple[str, int], str]
"""Rows as JSON text, by id and (for recorded conversations) trial."""


@dataclass
class Regrading(Execution):
    """One more set of scores of a finished run; if it is stopped early, it is not used.

    The scoring and the samples of the experiment are used: their ground truths replace those of the run. `resumed`
    names an interrupted set of scores to continue.
    """

    run: Run = field(kw_only=True)
    resumed: str | None = None

    async def work(self, experiment: Experiment) -> RunResult:
        """Grade every conversation and return the new set of scores.

        Raises:
            UsageError: a sample asks something different from the run, the graders of a continued set of scores have
            changed, or another process is working on the run.
        """
        truths = _truths(experiment)
        for attempt in self.store.attempts(self.run.id):
            sample_of(attempt, truths)
        with self.store.claimed(self.run.id):
            return await self._grade(experiment, truths)

    async def _grade(self, experiment: Experiment, truths: Truths) -> RunResult:
        run, store, scoring = self.run, self.store, experiment.scoring
        grading = self._begun(experiment)
        done = {row.key for row in store.scores(grading.id)} if self.resumed else set[AttemptKey]()
        planned, _ = store.counts(run.id)
        unlimited = Grades(scoring.graders, scoring.composer)
        at_a_time = 1 if unlimited.at_once else 2 * experiment.limits.concurrency
        grades = unlimited.in_places(at_a_time)
        self.workers = workers = WorkerPool(at_a_time)
        await self.tell(RunStarted(run, grading, planned, len(done)))
        async with store.writer(run.id, grading.id, scoring.fingerprints) as writer:

            async def grade(attempt: Attempt) -> None:
                outcome = await grades.grade(attempt, sample_of(attempt, truths))
                await writer.put_scores(attempt.key, outcome.scores, outcome.reward)
                await self.tell(AttemptEnded(outcome))

            await workers.run((one for one in store.attempts(run.id) if one.key not in done), grade)
        summary = self.summary(grading, scoring)
        if workers.stopped_by is None:
            grading = ended(grading, summary, time.time())
            store.update_grading(grading)
        await self.tell(RunEnded(run, grading))
        shown = corrected(summary, store, run, grading)
        return RunResult(run, grading, shown, store.place, workers.stopped_by)

    def _begun(self, experiment: Experiment) -> Grading:
        """Return a new set of scores, or the one to continue; an empty one of a process that was killed is used.

        Raises:
            UsageError: the graders have changed since it was started.
        """
        prints = experiment.scoring.fingerprints
        if self.resumed is not None:
            begun = self.store.grading(self.run.id, self.resumed)
            if begun.fingerprints != prints:
                raise UsageError(f"cannot continue {begun.id}: its graders have changed since; start a new grading")
            return begun
        known, spec = self.store.gradings(self.run.id), experiment.description.spec
        for left in known:
            same = (left.spec, left.fingerprints) == (spec, prints)
            if same and left.finished_at is None and not any(True for _ in self.store.scores(left.id)):
                return left
        begun = Grading(
            id=f"{self.run.id}-g{len(known) + 1}",
            run_id=self.run.id,
            spec=spec,
            fingerprints=prints,
            created_at=time.time(),
        )
        self.store.add_grading(begun)
        return begun


def _truths(experiment: Experiment) -> Truths:
    """Return the rows of an experiment, without recorded conversations."""
    samples = experiment.samples.read()
    assert isinstance(samples, Iterable)
    return {
        (sample.id, 0 if sample.messages is None else sample.trial or 0): sample.row_text(("messages", "trial"))
        for sample in samples
    }


def sample_of(attempt: Attempt, truths: Truths) -> Sample:
    """Return the sample of an attempt; a row of `truths` replaces it if both ask the same.

    Raises:
        UsageError: the row asks something different, or does not fit the conversation.
    """
    stored = json.loads(attempt.sample)
    row = json.loads(truths.get(_key(attempt.key, stored), attempt.sample))
    if row.get("input") != stored.get("input"):
        raise UsageError(f"sample '{attempt.key.sample_id}' has a different input than in the run; run the suite again")
    if "input" not in row:
        row["messages"] = attempt.trajectory.messages
    try:
        return Sample.model_validate(row)
    except ValidationError as error:
        raise UsageError(f"sample '{attempt.key.sample_id}': {describe(error)}") from error


def _key(key: AttemptKey, stored: dict[str, object]) -> tuple[str, int]:
    """Return the key of an attempt's ground truth: the trials of one sample share one row."""
    return (key.sample_id, 0 if "input" in stored else key.trial)
