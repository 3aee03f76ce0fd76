"""Conversations that are given in Python: which rows become which samples, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from vivavoce import Sample, UsageError
from vivavoce.samples.conversations import given_samples

Row = dict[str, Any]
TALK = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


def rows(count: int) -> list[Row]:
    return [{"id": f"r{i}", "messages": TALK} for i in range(count)]


def read(data: Any) -> list[Sample]:
    samples = given_samples(data)
    assert isinstance(samples, Iterator)
    return list(samples)


async def test_rows_become_samples_in_their_order_however_they_come() -> None:
    async def stream_rows() -> AsyncIterator[Row]:
        for row in rows(3):
            yield row

    assert [sample.id for sample in read(rows(3))] == ["r0", "r1", "r2"]
    samples = given_samples(stream_rows())
    assert isinstance(samples, AsyncIterator)
    assert [sample.id async for sample in samples] == ["r0", "r1", "r2"]


def test_the_trials_of_one_id_are_apart_and_an_id_comes_once() -> None:
    trials: list[Row] = [{"id": "a", "trial": trial, "messages": TALK} for trial in range(2)]
    assert [(sample.id, sample.trial) for sample in read(trials)] == [("a", 0), ("a", 1)]
    with pytest.raises(UsageError, match="row 2: the id 'a' is already used; give each row its own"):
        read([*trials, {"id": "a", "messages": TALK}])
    with pytest.raises(UsageError, match="row 1: the id '0' is already used"):
        read([{"messages": TALK}, {"id": 0, "messages": TALK}])


def test_rows_are_read_only_when_their_turn_comes() -> None:
    numbers: list[int] = []

    def source() -> Iterator[Row]:
        for number, row in enumerate(rows(5)):
            numbers.append(number)
            yield row

    samples = given_samples(source())
    assert isinstance(samples, Iterator)
    next(samples)
    assert numbers == [0]


def test_a_question_with_its_response_is_a_conversation_that_can_be_stored_and_read_again() -> None:
    row = {"id": "q", "user_input": "Q?", "response": "A.", "reference": "B.", "goal": "To know", "metadata": {"k": 1}}
    (sample,) = read([row])
    assert [message.text for message in sample.messages or []] == ["Q?", "A."]
    assert (sample.ground_truth, sample.goal, sample.metadata, sample.turn_count) == ("B.", "To know", {"k": 1}, 1)
    assert "input" not in sample.model_fields_set, "a row with an input would be asked again"
    assert "input" not in sample.row_text()


def test_a_sample_is_taken_as_it_is() -> None:
    sample = Sample(id="a", trial=3, messages=read(rows(1))[0].messages)
    (same,) = read([sample])
    assert same is sample
