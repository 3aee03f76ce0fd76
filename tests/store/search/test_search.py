from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.run import Outcome
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.search import search
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN


def said(number: int, *words: str, rationale: str | None = None) -> Outcome:
    """Return a conversation in which this is said, turn by turn."""
    turns = [Turn(index=index, messages=[HumanMessage(content=word)]) for index, word in enumerate(words)]
    grades = {"judge": Score(value=1, reason=rationale)}
    return Outcome(attempt=cases.attempt(number, Trajectory(turns=turns)), scores=grades)


def keep(store: Store, outcomes: Sequence[Outcome], run_id: str = RUN, grading_id: str = GRADING) -> None:
    async def put() -> None:
        async with store.writer(run_id, grading_id, FINGERPRINTS) as writer:
            for outcome in outcomes:
                await writer.put(outcome)

    asyncio.run(put())


def found(store: Store, text: str, run: str | None = None) -> list[str]:
    return [hit.key.sample_id for hit in store.search(text, run=run)]


def test_what_was_said_is_found_with_its_turn_and_place_the_newest_first(store: Store) -> None:
    keep(store, [said(1, "Hello", "I want a refund!"), said(2, "No refund, no return"), said(3, "Thanks")])
    second, first = store.search("REFUND")
    assert [hit.key.sample_id for hit in (second, first)] == ["sample-2", "sample-1"]
    assert (first.run_id, first.grading_id, first.turn) == (RUN, None, 1)
    assert first.snippet == ("I want a refund!", 9, 15)


def test_every_word_has_to_be_there_and_a_word_with_a_sign_in_it_stands_together(store: Store) -> None:
    keep(store, [said(1, "a blue car", "drives"), said(2, "car-pool"), said(3, "pool car")])
    assert found(store, "drives car") == ["sample-1"]
    assert found(store, "car-pool") == ["sample-2"]
    assert found(store, "car pool") == ["sample-3", "sample-2"]
    assert found(store, "cars") == []


def test_rationales_are_found_under_their_grading_also_those_of_turns_and_of_later_gradings(store: Store) -> None:
    turn = Score(turn=1, value=1, reason="evasive there")
    one = Outcome(
        attempt=cases.attempt(1, Trajectory()),
        scores={"judge": Score(value=1, reason="polite", turns=(turn,))},
    )
    keep(store, [one])
    (hit,) = store.search("evasive")
    assert (hit.grading_id, hit.turn, hit.snippet.text) == (GRADING, 1, "evasive there")
    store.add_grading(cases.grading("again", created_at=2000))

    async def grade_again() -> None:
        async with store.writer(RUN, "again", {}) as writer:
            await writer.put_scores(one.attempt.key, {"judge": Score(value=0, reason="evasive")}, None)

    asyncio.run(grade_again())
    assert [hit.grading_id for hit in store.search("evasive")] == ["again", GRADING]


def test_one_run_may_be_searched_alone_and_as_many_as_asked_are_given(store: Store) -> None:
    store.add_run(cases.run("other"))
    store.add_grading(cases.grading("other.1", run_id="other"))
    keep(store, [said(number, "the same") for number in range(30)])
    keep(store, [said(99, "the same")], "other", "other.1")
    assert found(store, "same", run="other") == ["sample-99"]
    assert len(found(store, "same", run=RUN)) == 20
    assert len(store.search("same", limit=3)) == 3
    assert found(store, "same", run="none") == []
    assert found(store, f'"run:{RUN}"') == []


@pytest.mark.parametrize(
    "typed",
    [
        *("refund OR", "NEAR(refund", '"words:refund"', "refund*", "{refund}", "^refund", "'; DROP TABLE runs; --"),
        *("refund:*", "(refund", ":wanted", "\0refund", "re\ud800 fund", "NOT refund", "no <-> other", "run : refund"),
    ],
)
def test_what_a_person_types_is_never_an_expression(store: Store, typed: str) -> None:
    keep(store, [said(1, "re fund refund or near refund words refund drop table runs wanted no other not run refund")])
    assert found(store, typed) == ["sample-1"]
    assert store.run(RUN) == cases.run()


@pytest.mark.parametrize("typed", ["", '"', "& | !", "\\ %", "\ud800", "🎓"])
def test_where_there_is_no_word_there_is_nothing_to_look_for(store: Store, typed: str) -> None:
    with pytest.raises(UsageError, match="there is no word to search for in"):
        store.search(typed)


def test_too_many_words_are_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="search for at most 16 words at a time, got 17"):
        store.search(" ".join(f"w{number}" for number in range(17)))


def test_odd_texts_do_not_stop_the_search(store: Store) -> None:
    parts = AIMessage.model_validate(
        {"content": [{"type": "text", "text": "in a part"}, {"type": "refusal", "refusal": "no"}]}
    )
    call = AIMessage.model_validate({"content": None, "tool_calls": []})
    odd = Outcome(
        attempt=cases.attempt(1, Trajectory(turns=[Turn(index=0, messages=[parts, call])])),
        scores={"judge": Score(value=1, reason="nul \0 \ud800 here")},
    )
    long = said(2, "word " * 20_000 + "needle", "x" * 100_000)
    keep(store, [odd, long, said(3, "\0\ud800 needle"), cases.unfortunate(4)])
    assert found(store, "part") == ["sample-1"]
    assert found(store, "nul here") == ["sample-1"]
    assert found(store, "needle") == ["sample-3", "sample-2"]


def test_all_is_read_once_however_many_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BATCH", 7)
    keep(store, [said(number, "the same") for number in range(60)])
    with ThreadPoolExecutor(4) as threads:
        assert sum(one.result() for one in [threads.submit(store.index_pending) for _ in range(4)]) == 60
    assert len(store.search("same", limit=100)) == 60
    assert store.index_pending() == 0


def test_a_filter_by_words_waits_for_its_own_run_alone(store: Store) -> None:
    store.add_run(cases.run("other"))
    store.add_grading(cases.grading("other.1", "other"))
    keep(store, [said(number, "the same") for number in range(3)])
    keep(store, [said(number, "the same") for number in range(2)], "other", "other.1")
    assert store.browse.count_samples("other.1", 'text:"the same"') == 2
    assert store.index_pending() == 3
    assert store.browse.count_samples(GRADING, 'text:"the same"') == 3


def test_who_finds_all_taken_waits_for_those_who_read_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    read_some = search._read_some  # pyright: ignore[reportPrivateUsage] - each look for what is pending

    def counted(*of: Any) -> int:
        looks.append(read_some(*of))
        return looks[-1]

    monkeypatch.setattr(search, "_read_some", counted)
    keep(store, [said(number, "the same") for number in range(60)])
    with ThreadPoolExecutor(4) as threads:
        for one in [threads.submit(store.index_pending) for _ in range(4)]:
            one.result()
    assert sum(looks) == 60
    assert len(looks) <= 4
