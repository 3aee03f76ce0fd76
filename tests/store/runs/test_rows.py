"""Records as rows, which are named tuples with JSON as text, and rows as records."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.errors import StoreError
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Evidence, Failure, Finding, Score, Usage, failed, mean_of_turns, skipped
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN, begun, outcome, score, unfortunate


def stored(store: Store, outcome: Outcome) -> Outcome:
    """Write an outcome and return what is read."""

    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            await writer.put(outcome)

    asyncio.run(put())
    return next(store.outcomes(GRADING, sample_id=outcome.attempt.key.sample_id))


def graded(one: Score) -> Outcome:
    return Outcome(attempt=cases.attempt(1, Trajectory()), scores={one.name: one})


@pytest.mark.parametrize("one", [outcome(1), unfortunate(1), graded(score("exact", value=0)), outcome(2**40)])
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


def test_everything_that_a_score_says_comes_back(store: Store) -> None:
    seen = Evidence(text="Tuesday", turn=0, verified=True)
    finding = Finding(
        kind="claim", what="flies on Tuesday", verdict="contradicted", state="fail", turn=0, evidence=(seen,)
    )
    one = score(
        "judge",
        value=0.75,
        raw="partial",
        passed=True,
        reason="one day off",
        confidence=0.5,
        findings=(finding.model_copy(update={"blame": "target", "data": {"support": "contradicted"}}),),
        other_evidence=(Evidence(text="c1", kind="call"),),
        turns=(score("judge", turn=0, state="skipped"), score("judge", turn=1, state="error", failure=cases.BROKEN)),
        usage=Usage(calls=2, cost=0.5),
        settings={"model": "m", "temperature": 0.0},
    )
    assert stored(store, graded(one)) == graded(one)


@pytest.mark.parametrize("raw", [True, False, 7.0, -0.5, "1", ""])
def test_a_score_in_the_terms_of_its_metric_keeps_its_type(store: Store, raw: bool | float | str) -> None:
    read = stored(store, graded(score("judge", value=0.5, raw=raw))).scores["judge"]
    assert (read.raw, type(read.raw)) == (raw, type(raw))


def test_a_score_of_another_name_and_fingerprint_is_stored_as_one_of_its_grader(store: Store) -> None:
    one = Outcome(attempt=cases.attempt(1, Trajectory()), scores={"exact": Score(name="accuracy", value=1)})
    assert stored(store, one) == graded(score("exact", value=1))


def test_the_scores_of_turns_are_stored_once(file_store: Store, tmp_path: Path) -> None:
    turns = [
        score("exact", turn=0, value=1, submission="only once", ground_truth={"a": [1, "ü"]}),
        score("exact", turn=1, state="error", reason="broke", failure=cases.BROKEN),
        score("exact", turn=2, state="skipped"),
    ]
    one = graded(mean_of_turns(turns, name="exact", fingerprint="f1"))
    assert stored(file_store, one) == one
    assert (tmp_path / "vivavoce.db").read_bytes().count(b"only once") <= 1
    file_store.close()
    assert (tmp_path / "vivavoce.db").read_bytes().count(b"only once") == 1


@pytest.mark.parametrize("said", ["none", "vivavoce:rows", [], [{"turn": 0, "score": 0.5}]])
def test_what_a_grader_itself_calls_per_turn_grades_comes_back(store: Store, said: Any) -> None:
    turn = score("exact", turn=0, value=1)
    for trial, turns in enumerate[tuple[Score, ...] | None]((None, (), (turn,))):
        found = score("exact", value=1, extra={"per_turn_grades": said}, turns=turns)
        one = Outcome(attempt=cases.attempt(trial, Trajectory()), scores={"exact": found})
        assert stored(store, one) == one


def test_text_that_is_not_unicode_is_stored_escaped_in_columns_and_exact_in_json(store: Store) -> None:
    talk = Trajectory(turns=[Turn(index=0, messages=[HumanMessage(content="a\ud800b\0")])], session_id="s\udfff")
    grade = score("exact", value=1, reason="r\ud800 ü", submission="\0", ground_truth="\ud800", extra={"x": "\udc80"})
    read = stored(store, Outcome(attempt=cases.attempt(1, talk), scores={"exact": grade}))
    submission = "\\u0000" if is_postgresql(store.place) else "\0"
    assert read.attempt.trajectory == talk.model_copy(update={"session_id": "s\\udfff"})
    assert read.scores == {"exact": grade.model_copy(update={"reason": "r\\ud800 ü", "submission": submission})}


@pytest.mark.parametrize("text", ["a\ud83db", "a\0b"])
def test_errors_with_odd_characters_are_stored_beside_others(store: Store, text: str) -> None:
    broken = Failure(blame="suite", kind=text, message=text, exception=text, evidence=text)
    grade = stored(store, graded(failed(broken, name="exact"))).scores["exact"]
    assert grade.failure is not None
    assert grade.failure.message == text
    attempt = cases.attempt(2, Trajectory(failure=broken))
    assert stored(store, Outcome(attempt=attempt, scores={"exact": skipped("no answer")})).attempt.trajectory.failure
    assert store.browse.errors_alike(GRADING).groups


@pytest.mark.parametrize("tag", ["a\0b", "a\ud800b"])
def test_tags_that_are_not_text_for_a_database_are_stored_escaped_and_found(store: Store, tag: str) -> None:
    attempt = cases.attempt(1, Trajectory()).model_copy(update={"sample": json.dumps({"id": "x", "tags": [tag]})})
    stored(store, Outcome(attempt=attempt, scores={"exact": score("exact", value=1)}))
    (sample,) = store.browse.samples(GRADING, f'tag:"{tag}"').samples
    assert sample.sample_id == attempt.key.sample_id


def test_a_row_that_a_database_refuses_costs_no_other_row(store: Store) -> None:
    good, bad, last = (cases.outcome(number, number) for number in range(3))
    bad = bad.model_copy(update={"attempt": bad.attempt.model_copy(update={"position": 2**70})})

    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for outcome in (good, bad, last):
                await writer.put(outcome)

    with pytest.raises(StoreError):
        asyncio.run(put())
    assert [outcome.attempt.key.sample_id for outcome in store.outcomes(GRADING)] == ["sample-0", "sample-2"]


def test_numbers_without_a_value_come_back(store: Store) -> None:
    read = stored(store, graded(score("exact", value=1, extra={"nan": math.nan, "inf": -math.inf})))
    assert math.isnan(read.scores["exact"].extra["nan"])
    assert read.scores["exact"].extra["inf"] == -math.inf


def test_an_object_that_json_does_not_know_is_stored_as_its_text(store: Store) -> None:
    read = stored(store, graded(score("exact", value=1, extra={"path": Path("/a"), "type": slice(1, 2)})))
    assert read.scores["exact"].extra == {"path": "/a", "type": "slice(1, 2, None)"}


words = st.text(max_size=20)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
anything = st.recursive(values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
pieces = st.builds(Evidence, text=words, kind=st.sampled_from(["quote", "call"]), verified=st.booleans())
findings = st.builds(
    Finding,
    kind=words,
    what=words,
    verdict=words,
    state=st.sampled_from(["pass", "partial", "fail", "skip"]),
    turn=st.none() | st.integers(0, 3),
    evidence=st.tuples(pieces) | st.just(()),
    data=st.dictionaries(words, anything, max_size=2),
)
said: dict[str, Any] = {
    "value": st.floats(0, 1),
    "raw": st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | words,
    "passed": st.booleans(),
    "reason": st.none() | words,
    "submission": words,
    "ground_truth": anything,
    "findings": st.tuples(findings) | st.just(()),
    "other_evidence": st.tuples(pieces) | st.just(()),
    "extra": st.dictionaries(words, anything, max_size=3),
}
turns = st.builds(Score, turn=st.just(0), **said)
scores = st.builds(Score, turns=st.none() | st.tuples(turns) | st.just(()), **said)


def named(found: Mapping[str, Score]) -> dict[str, Score]:
    """Return scores with the names under which they are stored."""

    def of(name: str, one: Score) -> Score:
        apart = None if one.turns is None else tuple(of(name, turn) for turn in one.turns)
        return one.model_copy(update={"name": name, "turns": apart, "fingerprint": FINGERPRINTS.get(name)})

    return {name: of(name, one) for name, one in found.items()}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One store for all examples of a property."""
    with begun(tmp_path_factory.mktemp("store") / "x.db") as store:
        yield store


@given(found=st.dictionaries(words, scores, max_size=3), text=words, extra=anything)
@settings(max_examples=60, deadline=None)
def test_whatever_can_be_said_comes_back(shared: Store, found: dict[str, Score], text: str, extra: Any) -> None:
    number = len(shared.done(RUN))
    message = AIMessage.model_validate({"content": text, "extra": extra})
    talk = Trajectory(turns=[Turn(index=0, messages=[message])], state={"x": extra})
    reward = Score(name="reward", value=1, reason=text)
    one = Outcome(attempt=cases.attempt(number, talk), scores=named(found), reward=reward)
    assert stored(shared, one) == one
