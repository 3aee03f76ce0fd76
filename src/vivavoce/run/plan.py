"""The plan of a run: which attempts its experiment makes, and in which order."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vivavoce.records.run import AttemptKey
from vivavoce.records.sampling import Drawn
from vivavoce.records.trajectory import Trajectory
from vivavoce.run.attempt import Task
from vivavoce.run.drivers import Driver, replay
from vivavoce.run.experiment import Experiment
from vivavoce.samples.sample import Sample

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
    drawn: Sequence[Drawn] = ()
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
