"""What a run would do: which rows, in which order, and what is refused before anything is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from vivavoce import Sample, UsageError
from vivavoce.records.run import AttemptKey
from vivavoce.run.attempt import Task
from vivavoce.run.plan import RECORDED, GivenPlan, Plan, RunOptions, hash_file

from .talks import Row, rows, streamed, talk, written


def planned(data: Any, done: set[AttemptKey] | None = None) -> list[Task]:
    tasks = GivenPlan(data, 8).tasks({RECORDED: None}, done or set())
    assert isinstance(tasks, Iterator)
    return list(tasks)


def key(sample: str, trial: int = 0) -> AttemptKey:
    return AttemptKey(sample, RECORDED, trial)


async def test_rows_become_tasks_in_their_order_however_they_come() -> None:
    wanted = [(key(f"r{i}"), i) for i in range(3)]
    assert [(task.key, task.position) for task in planned(rows(3))] == wanted
    tasks = GivenPlan(streamed(rows(3)), 8).tasks({RECORDED: None}, set())
    assert isinstance(tasks, AsyncIterator)
    assert [(task.key, task.position) async for task in tasks] == wanted


@given(st.sets(st.integers(0, 19)))
def test_what_is_done_is_left_out_and_the_rest_keeps_its_place(done: set[int]) -> None:
    tasks = planned(rows(20), {key(f"r{i}") for i in done})
    assert [task.position for task in tasks] == [i for i in range(20) if i not in done]


def test_how_many_rows_there_are_is_known_of_what_has_a_length() -> None:
    assert GivenPlan(rows(3), 8).planned == 3
    assert GivenPlan(iter(rows(3)), 8).planned is None


def test_the_trials_of_one_id_are_apart_and_an_id_comes_once() -> None:
    trials: list[Row] = [{"id": "a", "trial": trial, "messages": talk()} for trial in range(2)]
    assert [task.key for task in planned(trials)] == [key("a"), key("a", 1)]
    with pytest.raises(UsageError, match="row 2: the id 'a' was there before; give each row its own"):
        planned([*trials, {"id": "a", "messages": talk()}])
    with pytest.raises(UsageError, match="row 1: the id '0' was there before"):
        planned([{"messages": talk()}, {"id": 0, "messages": talk()}])


def test_a_duplicate_is_found_even_of_a_row_that_is_done() -> None:
    same: list[Row] = [{"id": "a", "messages": talk()}] * 2
    with pytest.raises(UsageError, match="was there before"):
        planned(same, {key("a")})


def test_rows_are_read_only_when_their_turn_comes() -> None:
    read: list[int] = []

    def source() -> Iterator[Row]:
        for number, row in enumerate(rows(5)):
            read.append(number)
            yield row

    tasks = GivenPlan(source(), 8).tasks({RECORDED: None}, set())
    assert isinstance(tasks, Iterator)
    next(tasks)
    assert read == [0]


def test_a_question_with_its_response_is_a_conversation_that_can_be_stored_and_read_again() -> None:
    row = {"id": "q", "user_input": "Q?", "response": "A.", "reference": "B.", "goal": "To know", "metadata": {"k": 1}}
    (task,) = planned([row])
    sample = task.sample
    assert [message.text for message in sample.messages or []] == ["Q?", "A."]
    assert (sample.ground_truth, sample.goal, sample.metadata, sample.turn_count) == ("B.", "To know", {"k": 1}, 1)
    assert "input" not in sample.model_fields_set, "a row with an input would be asked again"
    assert "input" not in sample.row_text()


def test_a_sample_is_taken_as_it_is() -> None:
    sample = Sample(id="a", trial=3, messages=planned(rows(1))[0].sample.messages)
    (task,) = planned([sample])
    assert task.sample is sample
    assert task.key == key("a", 3)


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_calls", [-1]),
        ("max_cost", [-0.1, NAN, INFINITE]),
        ("trials", [0]),
        ("max_concurrent", [0]),
        ("max_samples", [0]),
        ("max_call", [1]),
    ],
)
def test_options_that_mean_nothing_are_refused(name: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(ValidationError):
            RunOptions.model_validate({name: value})


def test_a_dataset_is_known_by_its_content() -> None:
    path = written(rows(2))
    plan = Plan(path, Path(), {}, True, 1, None, None, None, 8)
    before = plan.dataset
    written(rows(2))
    assert plan.dataset == before
    written(rows(3))
    assert hash_file(path) == plan.dataset != before
