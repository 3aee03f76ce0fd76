"""One sample, once: hold the conversation, then grade it; and the plan of all attempts of a run."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from vivavoce.grading.grader import Grader
from vivavoce.grading.rewards import Composer, CustomReward
from vivavoce.models.model import first_then_all
from vivavoce.pacing.limits import Places
from vivavoce.records.run import Attempt, AttemptKey, DrawRecord, Outcome
from vivavoce.records.score import Score, failed
from vivavoce.records.trajectory import Trajectory
from vivavoce.run.drivers import Driver, OnTurn, replay
from vivavoce.run.experiment import Experiment
from vivavoce.samples.sample import Sample
from vivavoce.validation import construct
from vivavoce.work_time import conversation_work


@dataclass(frozen=True, slots=True)
class Task:
    """An attempt to be made, at its place in the plan; without a `driver` `recorded` says what was recorded of it."""

    key: AttemptKey
    sample: Sample
    driver: Driver | None = None
    position: int = 0
    recorded: Callable[[Sample], Trajectory] = replay
    drawn: DrawRecord | None = None


async def hold(task: Task, on_turn: OnTurn) -> Attempt:
    """Hold the conversation of a task, or replay it."""
    started = time.time()
    driver, sample = task.driver, task.sample
    trajectory = task.recorded(sample) if driver is None else await driver.hold(sample, on_turn, task.key.trial)
    fields = {
        "key": task.key,
        "scenario": sample.scenario_hash,
        "sample": sample.row_text(),
        "trajectory": trajectory,
        "started_at": started,
        "position": task.position,
        **({} if task.drawn is None else {"drawn": task.drawn}),
    }
    return construct(Attempt, fields)


@dataclass(frozen=True, slots=True)
class Grades:
    """The graders of a run and its reward, applied to attempts.

    What the judges of a conversation are asked begins alike, and a server that keeps the beginnings of prompts has less
    to compute where it is asked close together. So the first judge is asked alone, then the others at once, and where
    there are many, fewer conversations are begun: with `places`, one takes a place for every two judges.
    """

    graders: tuple[Grader, ...]
    composer: Composer | None = None
    places: Places | None = None

    @property
    def at_once(self) -> bool:
        """Whether grading never waits, so that grading one by one is as fast as grading many at a time."""
        waits = any(grader.waits for grader in self.graders)
        return not waits and not isinstance(self.composer, CustomReward)

    def in_places(self, number: int) -> Grades:
        """Return the same with this many places for the conversations that judges are asked about."""
        return replace(self, places=Places(number))

    @property
    def judged(self) -> bool:
        """Whether a grader asks a judge."""
        return any(map(_asks, self.graders))

    def verdicts(self, sample: Sample) -> int:
        """Return how many judge verdicts a sample needs."""
        return sum(grader.verdicts(sample) for grader in self.graders)

    def ungraded(self, attempt: Attempt) -> Outcome:
        """Return an attempt that failed, with that failure as the score of every grader; nobody is asked."""
        failure = attempt.failure
        assert failure is not None
        prints = {grader.name: grader.fingerprint for grader in self.graders}
        scores = {name: failed(failure, name=name, fingerprint=fingerprint) for name, fingerprint in prints.items()}
        return construct(Outcome, {"attempt": attempt, "scores": scores, "reward": None})

    async def grade(self, attempt: Attempt, sample: Sample) -> Outcome:
        """Return an attempt with the score of every grader; a grader that fails does not affect the others.

        Raises:
            BudgetExhausted: a limit on calls or cost is reached.
            Deferred: the answer to a question will come later; every grader has asked what it could.
        """
        talk, trial = attempt.trajectory, attempt.key.trial
        asked: list[Grader] = []
        scores: dict[str, Score] = {}
        with conversation_work():
            for grader in self.graders:
                if _asks(grader):
                    asked.append(grader)
                else:
                    scores[grader.name] = await grader.grade(sample, talk, trial)
            if len(asked) == 1:
                scores[asked[0].name] = await asked[0].grade(sample, talk, trial)
            elif asked:
                scores |= await self._asked(asked, sample, talk, trial)
        if len(self.graders) > 1:
            scores = {grader.name: scores[grader.name] for grader in self.graders}
        reward = None if self.composer is None else await self.composer.compose(scores, attempt, sample)
        return construct(Outcome, {"attempt": attempt, "scores": scores, "reward": reward})

    async def _asked(self, graders: Sequence[Grader], sample: Sample, talk: Trajectory, trial: int) -> dict[str, Score]:
        """Return the scores of graders that ask judges."""
        calls = [partial(grader.grade, sample, talk, trial) for grader in graders]
        if self.places is None or len(graders) <= 2:  # there is a place for each conversation that is begun
            scores = await first_then_all(calls)
        else:
            apply = sum(not grader.inapplicable(sample) for grader in graders)
            async with self.places.hold(-(-apply // 2)):
                scores = await first_then_all(calls)
        return dict(zip((grader.name for grader in graders), scores, strict=True))


def _asks(grader: Grader) -> bool:
    """Say whether a grader may ask a judge."""
    return grader.judged or grader.verdicts_on is not None


RECORDED = "recorded"
"""The name of the target in a replay: the recorded system."""

Drivers = Mapping[str, Driver | None]
"""The driver for each target, None for recorded conversations."""


def tasks_of(experiment: Experiment, drivers: Drivers, done: set[AttemptKey]) -> Iterator[Task] | AsyncIterator[Task]:
    """Return the attempts that are not done, each created when it is needed and with its place among all attempts."""
    plan = _Plan(drivers, experiment.trials, done, experiment.recorded or replay, experiment.samples.drawn)
    samples = experiment.samples.read()
    if isinstance(samples, AsyncIterable):
        return _awaited(samples, plan)
    return (task for sample in samples for task in plan.tasks(sample))


async def _awaited(samples: AsyncIterable[Sample], plan: _Plan) -> AsyncIterator[Task]:
    async for sample in samples:
        for task in plan.tasks(sample):
            yield task


@dataclass(slots=True)
class _Plan:
    """Creates attempts sample by sample, then target by target and trial by trial."""

    drivers: Drivers
    trials: int
    done: set[AttemptKey]
    recorded: Callable[[Sample], Trajectory]
    drawn: Sequence[DrawRecord] = ()
    position: int = 0

    def tasks(self, sample: Sample) -> Iterator[Task]:
        """Yield the attempts of the next sample that are not done."""
        for target, driver in self.drivers.items():
            for trial in [sample.trial or 0] if driver is None else range(self.trials):
                key, position = AttemptKey(sample.id, target, trial), self.position
                self.position += 1
                if key not in self.done:
                    how = self.drawn[position] if self.drawn else None
                    yield Task(key, sample, driver, position, self.recorded, how)
