"""`ForkRun`: goes on from a conversation that was held, until it is clear at which turn it went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from vivavoce.errors import NotFound, UsageError
from vivavoce.features.forks.records import FORK, Fork, same_turns, start_of
from vivavoce.records.run import AttemptKey, Grading, Outcome
from vivavoce.records.score import conversation_label
from vivavoce.records.trajectory import Turn
from vivavoce.run.attempt import Drivers, Task
from vivavoce.run.experiment import Experiment
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.run.rounds import Schedule
from vivavoce.stats.turning_point import ROUND, Tried, next_place
from vivavoce.store.store import Store

LOST = 5
"""After this many continuations in a row that say nothing, a search ends: the target is down, or does not return."""


@dataclass
class ForkRun(ExperimentRun):
    """A run of continuations of one conversation; without a turn it searches for the one at which the odds fell."""

    fork: Fork | None = None

    def __post_init__(self) -> None:
        """Store with the run what it is a fork of."""
        if self.fork is not None:
            self.marks = {FORK: self.fork.model_dump(exclude_none=True)}
            self.title = self.fork.words

    def schedule(
        self, experiment: Experiment, drivers: Drivers, done: set[AttemptKey], grading: Grading
    ) -> Schedule | None:
        """Return the search, None where the number of continuations is given.

        Raises:
            UsageError: there are several targets.
        """
        fork = self.fork
        if fork is None or fork.turn is not None:
            return None
        earlier = self.store.outcomes(grading.id) if self.resumed else ()
        return Search(experiment, fork, drivers, done, earlier)


@dataclass(slots=True)
class Counts:
    """The continuations from one place: how many succeeded and failed, and how many say nothing.

    `apart` is how many did not go on from the same conversation, for the target had answered its beginning otherwise.
    """

    passed: int = 0
    failed: int = 0
    errors: int = 0
    apart: int = 0

    @property
    def tried(self) -> Tried:
        """Those that say something."""
        return Tried(self.passed, self.passed + self.failed)


def count_outcome(counts: Counts, outcome: Outcome, before: Sequence[Turn], grader: str) -> bool:
    """Count a continuation, and return whether it says something of its place; `before` is what was held before."""
    scores = outcome.scores
    score = outcome.reward if grader == "reward" else scores.get(grader)
    if outcome.attempt.failure is not None or score is None or score.passed is None:
        counts.errors += 1
        return False
    if not same_turns(before, outcome.attempt.trajectory.turns):
        counts.apart += 1
        return False
    counts.passed += score.passed
    counts.failed += not score.passed
    return True


def held_outcome(store: Store, fork: Fork) -> Outcome:
    """Return the conversation that a fork goes on from.

    Raises:
        NotFound: it is not in the store any more.
    """
    for outcome in store.outcomes(store.grading(fork.run).id, sample_id=fork.sample):
        if outcome.attempt.key == (fork.sample, fork.target, fork.trial):
            return outcome
    raise NotFound("conversation", conversation_label(fork.sample, fork.trial), within=f"run {fork.run}")


class Search:
    """Continuations in rounds of `ROUND`, each from the place that then says most, until the turn is known.

    What follows hangs only on the outcomes of the rounds before: a run that is continued goes on as it would have.
    """

    def __init__(
        self,
        experiment: Experiment,
        fork: Fork,
        drivers: Drivers,
        done: set[AttemptKey],
        earlier: Iterable[Outcome],
    ) -> None:
        if len(drivers) != 1:
            raise UsageError(f"a conversation needs exactly one target, got {len(drivers)}: {', '.join(drivers)}")
        ((self._target, self._driver),) = drivers.items()
        self._experiment, self._fork, self._done = experiment, fork, done
        self._outcomes = {outcome.attempt.key: outcome for outcome in earlier if outcome.attempt.key in done}
        self._at_work = 0
        self._ended = asyncio.Event()

    async def tasks(self) -> AsyncIterator[Task]:
        """Yield the tasks that are not done; a round waits until the one before it has ended."""
        read = self._experiment.samples.read()
        assert isinstance(read, Iterable)
        samples = {start_of(sample.id): sample for sample in read}
        counts = {turn: Counts() for turn in self._fork.starts}
        started = dict.fromkeys(counts, 0)
        spent = lost = 0
        while spent < self._fork.trials and lost < LOST:
            place = next_place([count.tried for count in counts.values()])
            if place is None:
                return
            sample = samples[place]
            keys = [AttemptKey(sample.id, self._target, started[place] + i) for i in range(ROUND)]
            keys = keys[: self._fork.trials - spent]
            for position, key in enumerate(keys, spent):
                if key not in self._done:
                    self._at_work += 1
                    yield Task(key, sample, self._driver, position)
            while self._at_work:
                self._ended.clear()
                await self._ended.wait()
            started[place] += len(keys)
            spent += len(keys)
            for key in keys:
                lost = 0 if self._count(counts[place], key) else lost + 1

    def put(self, outcome: Outcome) -> None:
        """Take the scores of a continuation."""
        self._outcomes[outcome.attempt.key] = outcome

    def end(self) -> None:
        """Say that a continuation has ended, with scores or without."""
        self._at_work -= 1
        self._ended.set()

    def _count(self, counts: Counts, key: AttemptKey) -> bool:
        outcome = self._outcomes.get(key)
        before = self._experiment.held[key.sample_id].turns
        return outcome is not None and count_outcome(counts, outcome, before, self._fork.grader)
