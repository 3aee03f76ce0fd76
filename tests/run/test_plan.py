"""Which attempts an experiment makes, and in which order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.records.run import AttemptKey
from vivavoce.run.attempt import RECORDED, Drivers, Task, tasks_of
from vivavoce.run.drivers import Driver
from vivavoce.run.experiment import Samples
from vivavoce.samples.sample import Sample

from .experiments import asked, experiment, recorded

DRIVER = cast("Driver", object())


def planned(samples: list[Sample], drivers: Drivers, done: set[AttemptKey] | None = None, **more: Any) -> list[Task]:
    tasks = tasks_of(experiment(samples, **more), drivers, done or set())
    assert isinstance(tasks, Iterator)
    return list(tasks)


def test_attempts_go_sample_by_sample_then_target_by_target_then_trial_by_trial() -> None:
    tasks = planned(asked(2), {"a": DRIVER, "b": DRIVER}, trials=2)
    assert [task.key for task in tasks] == [
        AttemptKey(sample, target, trial) for sample in ("s0", "s1") for target in "ab" for trial in range(2)
    ]
    assert [task.position for task in tasks] == list(range(8))


def test_a_recorded_conversation_has_the_trial_that_it_was_recorded_as() -> None:
    first = recorded(1)[0]
    tasks = planned([first, first.model_copy(update={"trial": 3})], {RECORDED: None})
    assert [task.key for task in tasks] == [AttemptKey("s0", RECORDED, 0), AttemptKey("s0", RECORDED, 3)]


@given(st.sets(st.integers(0, 19)))
def test_what_is_done_is_left_out_and_the_rest_keeps_its_place(done: set[int]) -> None:
    tasks = planned(recorded(20), {RECORDED: None}, {AttemptKey(f"s{i}", RECORDED, 0) for i in done})
    assert [task.position for task in tasks] == [i for i in range(20) if i not in done]


async def test_samples_of_a_stream_become_tasks_when_they_come() -> None:
    begun: list[int] = []

    async def stream() -> AsyncIterator[Sample]:
        for number, sample in enumerate(asked(3)):
            begun.append(number)
            yield sample

    tasks = tasks_of(experiment([], samples=Samples(stream)), {"a": DRIVER}, set())
    assert isinstance(tasks, AsyncIterator)
    assert ((await anext(tasks)).key.sample_id, begun) == ("s0", [0])
    assert [task.position async for task in tasks] == [1, 2]


@pytest.mark.parametrize(
    ("count", "targets", "trials", "conversations"), [(3, (), 1, 3), (3, (1, 2), 4, 24), (None, (), 1, None)]
)
def test_how_many_conversations_there_will_be(count: int | None, targets: Any, trials: int, conversations: Any) -> None:
    made = experiment([], samples=Samples(list[Sample], count), targets=targets, trials=trials)
    assert made.planned == conversations
