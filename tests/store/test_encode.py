from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.grading.grader import summarise
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.address import is_postgresql
from vivavoce.store.store import Store

from . import cases
from .cases import FINGERPRINTS, GRADING, RUN, begun, outcome, unfortunate


def stored(store: Store, outcome: Outcome) -> Outcome:
    """Write an outcome and return what is read."""

    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            await writer.put(outcome)

    asyncio.run(put())
    return next(store.outcomes(GRADING, sample_id=outcome.attempt.key.sample_id))


def graded(grade: Score) -> Outcome:
    return Outcome(attempt=cases.attempt(1, Trajectory()), scores={"exact": grade})


@pytest.mark.parametrize("one", [outcome(1), unfortunate(1), graded(Score(value=0)), outcome(2**40)])
def test_an_outcome_comes_back_as_it_was(store: Store, one: Outcome) -> None:
    assert stored(store, one) == one


def test_messages_come_back_with_just_what_was_given(store: Store) -> None:
    messages: list[AnyMessage] = [
        HumanMessage(content="Hi", timestamp=datetime(2026, 11, 20, tzinfo=UTC), metadata={"a": [1, None]}),
        AIMessage.model_validate({"role": "assistant", "content": [{"type": "text", "text": "Yes"}], "reasoning": "x"}),
        ToolMessage(content="", tool_call_id=None),
    ]
    talk = Trajectory(turns=[Turn(index=0, messages=messages)], state={"human": "likes tea"})
    read = stored(store, Outcome(attempt=cases.attempt(1, talk), scores={}))
    assert [m.to_dict() for m in read.attempt.trajectory.messages] == [m.to_dict() for m in messages]
    assert read.attempt.trajectory == talk


def test_the_mirror_that_grading_makes_is_stored_once(file_store: Store, tmp_path: Path) -> None:
    turns = [
        Score(turn=0, value=1, submission="only once", ground_truth={"a": [1, "ü"]}),
        Score(turn=1, state="error", reason="broke", failure=cases.BROKEN),
        Score(turn=2, state="skipped"),
    ]
    one = graded(summarise(turns))
    assert stored(file_store, one) == one
    assert (tmp_path / "vivavoce.db").read_bytes().count(b"only once") <= 1
    file_store.close()
    assert (tmp_path / "vivavoce.db").read_bytes().count(b"only once") == 1


@pytest.mark.parametrize("mirror", ["none", [], [{"turn": 0}], [{"turn": 0, "score": 0.5}]])
def test_metadata_that_repeats_the_turns_in_another_way_comes_back_too(store: Store, mirror: Any) -> None:
    for trial, turns in enumerate((None, list[Score](), [Score(turn=0, value=1)])):
        grade = Score(value=1, extra={"per_turn_grades": mirror}, turns=turns)
        one = Outcome(attempt=cases.attempt(trial, Trajectory()), scores={"exact": grade})
        assert stored(store, one) == one


def test_text_that_is_not_unicode_is_stored_escaped_in_columns_and_exact_in_json(store: Store) -> None:
    talk = Trajectory(turns=[Turn(index=0, messages=[HumanMessage(content="a\ud800b\0")])], session_id="s\udfff")
    grade = Score(value=1, reason="r\ud800 ü", submission="\0", ground_truth="\ud800", extra={"x": "\udc80"})
    read = stored(store, Outcome(attempt=cases.attempt(1, talk), scores={"exact": grade}))
    submission = "\\u0000" if is_postgresql(store.place) else "\0"
    assert read.attempt.trajectory == talk.model_copy(update={"session_id": "s\\udfff"})
    assert read.scores == {"exact": grade.model_copy(update={"rationale": "r\\ud800 ü", "submission": submission})}


def test_numbers_without_a_value_come_back(store: Store) -> None:
    read = stored(store, graded(Score(value=1, extra={"nan": math.nan, "inf": -math.inf})))
    assert math.isnan(read.scores["exact"].extra["nan"])
    assert read.scores["exact"].extra["inf"] == -math.inf


def test_an_object_that_json_does_not_know_is_stored_as_its_text(store: Store) -> None:
    read = stored(store, graded(Score(value=1, extra={"path": Path("/a"), "type": slice(1, 2)})))
    assert read.scores["exact"].extra == {"path": "/a", "type": "slice(1, 2, None)"}


words = st.text(max_size=20)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
anything = st.recursive(values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
fractions = st.floats(0, 1)
turn_grades = st.builds(
    Score, turn=st.just(0), score=fractions, rationale=st.none() | words, submission=words, ground_truth=anything
)
grades = st.builds(
    Score,
    score=fractions,
    rationale=st.none() | words,
    submission=words,
    ground_truth=anything,
    metadata=st.dictionaries(words, anything, max_size=3),
    per_turn_grades=st.none() | st.lists(turn_grades, max_size=1),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples of a property."""
    with begun(tmp_path_factory.mktemp("store") / "x.db") as store:
        yield store


@given(named=st.dictionaries(words, grades, max_size=3), said=words, extra=anything)
@settings(max_examples=60, deadline=None)
def test_whatever_can_be_said_comes_back(shared: Store, named: dict[str, Score], said: str, extra: Any) -> None:
    number = len(shared.done(RUN))
    message = AIMessage.model_validate({"content": said, "extra": extra})
    talk = Trajectory(turns=[Turn(index=0, messages=[message])], state={"x": extra})
    one = Outcome(attempt=cases.attempt(number, talk), scores=named, reward=Score(value=1, reason=said))
    assert stored(shared, one) == one
