"""Trials in rounds: one of every sample that needs another, then a look at what is known, until that is enough."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Protocol

from vivavoce.grading.scores import Scores
from vivavoce.records.run import AttemptKey, Outcome, ScoreRow, breaches_of
from vivavoce.records.score import Score
from vivavoce.run.attempt import Drivers, Task
from vivavoce.run.drivers import replay
from vivavoce.run.experiment import Experiment
from vivavoce.run.stopping import Stopping
from vivavoce.run.tallies import Tally
from vivavoce.samples.sample import Sample


class Schedule(Protocol):
    """The tasks of an experiment that depend on what came of those before them."""

    def tasks(self) -> AsyncIterator[Task]:
        """Yield the tasks that are not done, each when it is clear that it is needed."""
        ...

    def put(self, outcome: Outcome) -> None:
        """Take the scores of an attempt."""
        ...

    def end(self) -> None:
        """Say that a task has ended, with scores or without."""
        ...


class Rounds:
    """The tasks of an experiment whose trials may be enough before their number is reached.

    No trial of a round begins before the round before it has ended, and what follows hangs only on the scores of the
    rounds: a run that is continued, with the `earlier` scores from the store, goes on as it would have gone on.
    """

    def __init__(
        self,
        experiment: Experiment,
        stopping: Stopping,
        drivers: Drivers,
        done: set[AttemptKey],
        earlier: Iterable[ScoreRow],
    ) -> None:
        self._experiment = experiment
        self._stopping = stopping
        ((self._target, self._driver),) = drivers.items()
        self._done = done
        self._rows: dict[tuple[AttemptKey, str], ScoreRow] = {
            (row.key, row.name): row for row in earlier if row.key in done
        }
        self._at_work = 0
        self._ended = asyncio.Event()

    async def tasks(self) -> AsyncIterator[Task]:
        """Yield the tasks that are not done, round by round; a round waits until the one before it has ended."""
        for trial in range(self._stopping.most):
            wanted = None
            if trial:
                scores = self._scores(trial)
                if self._stopping.met(scores):
                    return
                wanted = self._stopping.wanted(scores)
            async for place, sample in self._samples():
                key = AttemptKey(sample.id, self._target, trial)
                if key in self._done or (wanted is not None and sample.id not in wanted):
                    continue
                self._at_work += 1
                position = place * self._stopping.most + trial
                yield Task(key, sample, self._driver, position, self._experiment.recorded or replay)
            while self._at_work:
                self._ended.clear()
                await self._ended.wait()

    def put(self, outcome: Outcome) -> None:
        """Take the scores of an attempt."""
        key = outcome.attempt.key
        for name, score in outcome.scores.items():
            self._rows[key, name] = _row(key, name, score)
        if outcome.reward is not None:
            self._rows[key, "reward"] = _row(key, "reward", outcome.reward)

    def end(self) -> None:
        """Say that a task has ended, with scores or without."""
        self._at_work -= 1
        self._ended.set()

    async def _samples(self) -> AsyncIterator[tuple[int, Sample]]:
        samples, place = self._experiment.samples.read(), 0
        if isinstance(samples, AsyncIterable):
            async for sample in samples:
                yield place, sample
                place += 1
            return
        for one in enumerate(samples):
            yield one

    def _scores(self, rounds: int) -> dict[str, Scores]:
        """Return the scores of the first rounds, by grader."""
        scoring = self._experiment.scoring
        tallies = {name: Tally() for name in (*(grader.name for grader in scoring.graders), "reward")}
        for (key, name), row in self._rows.items():
            if key.trial < rounds and name in tallies:
                tallies[name].add(row)
        return {name: one.scores for name, one in tallies.items()}


def _row(key: AttemptKey, name: str, score: Score) -> ScoreRow:
    kind = "reward" if name == "reward" else "grade"
    row = ScoreRow(key, kind, name, score.state, score.value, score.passed, measured=score.measured)
    return row._replace(unverified=score.has_unverified_evidence, breaches=breaches_of(score))
