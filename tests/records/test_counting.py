from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.records.score import (
    conversation_label,
    conversation_name,
    split_name,
    to_index,
    to_number,
    turn_label,
    turn_span,
)


@pytest.mark.parametrize(
    ("turns", "text"),
    [([4], "turn 5"), ([0, 1, 2], "turns 1 to 3"), ([0, 2, 3, 7], "turns 1, 3 to 4, 8"), (range(2), "turns 1 to 2")],
)
def test_turns_in_a_row_are_said_as_a_run(turns: list[int], text: str) -> None:
    assert turn_span(turns) == text


@given(st.sets(st.integers(0, 40), min_size=1).map(sorted))
def test_no_turn_is_lost_or_added(turns: list[int]) -> None:
    numbers: list[int] = []
    for run in turn_span(turns).partition(" ")[2].split(", "):
        start, _, end = run.partition(" to ")
        numbers += range(int(start), int(end or start) + 1)
    assert [to_index(number) for number in numbers] == turns


def test_people_count_from_1() -> None:
    assert (to_number(0), to_index(1)) == (1, 0)
    assert (turn_label(0), turn_label(None)) == ("turn 1", "before turn 1")


def test_a_conversation_is_called_by_its_sample_and_from_the_second_trial_on_by_a_number() -> None:
    assert [conversation_label("a", trial) for trial in (0, 1, 2)] == ["a", "a#2", "a#3"]
    assert conversation_name("a", 0) == "a#1"


@given(st.text(), st.integers(0, 10**9 - 2))
def test_a_name_is_read_as_it_is_written(sample: str, trial: int) -> None:
    if sample:
        assert split_name(conversation_name(sample, trial)) == (sample, trial)


@pytest.mark.parametrize("name", ["a", "a#", "#2", "a#x", "a#-1", "a#2 ", "a#²", "a#1234567890"])
def test_what_ends_in_no_number_names_no_trial(name: str) -> None:
    assert split_name(name) == (name, None)


def test_there_is_no_trial_0() -> None:
    with pytest.raises(UsageError, match="'a#0': trials count from 1, so the first is 'a#1'"):
        split_name("a#0")
