from __future__ import annotations

from dataclasses import replace

from vivavoce.records.replies import AskedQuestion, Batch
from vivavoce.records.score import Failure, Usage
from vivavoce.store.batches import ANSWERED, ASKED, FAILED
from vivavoce.store.store import Store

JUDGE = "openai:gpt-4.1-mini"
FIRST = Batch("b1", "r1", JUDGE, JUDGE, 3, 100.0)
SECOND = Batch("b2", "r1", JUDGE, JUDGE, 3, 101.0)
THEIRS = Batch("b3", "r2", JUDGE, JUDGE, 3, 102.0)
USED = Usage(input_tokens=10, output_tokens=2, calls=1, cost=0.5)
LATE = Failure(blame="judge", kind="http", message="too late")


def answered(batch: Batch, key: str) -> AskedQuestion:
    return AskedQuestion(key, batch.id, batch.run_id, ANSWERED, 0, 1, usage=USED)


def late(batch: Batch, key: str) -> AskedQuestion:
    return AskedQuestion(key, batch.id, batch.run_id, FAILED, 0, 0, LATE, "ask again")


def states(store: Store, batch: Batch) -> dict[str, tuple[str, int, int]]:
    return {one.key: (one.state, one.tries, one.answers) for one in store.batches.within(batch)}


def test_a_question_is_in_one_batch_at_a_time(store: Store) -> None:
    assert store.batches.claim(FIRST, ["a", "b", "a"]) == {"a", "b"}
    assert store.batches.claim(SECOND, ["b", "c"]) == {"c"}
    assert store.batches.claim(THEIRS, ["a", "b", "c"]) == set()
    assert [(one.id, one.requests) for one in store.batches.open([JUDGE])] == [("b1", 2), ("b2", 1)]
    assert store.batches.open(["another model"]) == []
    assert store.batches.batch("b3") is None


def test_what_a_service_calls_a_batch_is_kept(store: Store) -> None:
    store.batches.claim(FIRST, ["a"])
    told = replace(FIRST, requests=1, file="file-1", service_id="batch_1", strangers=("batch_0",))
    store.batches.update(told)
    assert store.batches.of_run("r1") == [told] == [store.batches.batch("b1")]
    assert store.batches.known_to(JUDGE) == {"batch_1"}


def test_a_batch_that_has_ended_settles_its_questions_once(store: Store) -> None:
    store.batches.claim(FIRST, ["a", "b", "c"])
    found = {"a": answered(FIRST, "a"), "b": late(FIRST, "b")}
    for _ in range(2):
        store.batches.settle(replace(FIRST, ended_at=200.0), found)
    assert states(store, FIRST) == {"a": (ANSWERED, 1, 1), "b": (FAILED, 1, 0), "c": (FAILED, 1, 0)}
    assert store.batches.open([JUDGE]) == []
    unsettled = {one.key: one for one in store.batches.unsettled("r1")}
    assert (unsettled["a"].usage, unsettled["b"].failure, unsettled["b"].then) == (USED, LATE, "ask again")
    assert (unsettled["c"].failure, unsettled["c"].then) == (
        Failure(blame="judge", kind="http", message="the service returned nothing about it"),
        "ask again",
    )


def test_the_tries_of_a_run_are_counted_and_another_run_begins_anew(store: Store) -> None:
    store.batches.claim(FIRST, ["a", "b"])
    store.batches.settle(replace(FIRST, ended_at=200.0), {"a": late(FIRST, "a"), "b": answered(FIRST, "b")})
    assert store.batches.claim(SECOND, ["a", "b"]) == {"a", "b"}
    assert states(store, SECOND) == {"a": (ASKED, 2, 0), "b": (ASKED, 2, 1)}
    store.batches.settle(replace(SECOND, ended_at=201.0), {"a": answered(SECOND, "a"), "b": answered(SECOND, "b")})
    assert {one.key: one.usage for one in store.batches.within(SECOND)} == {"a": USED, "b": USED + USED}
    assert store.batches.claim(THEIRS, ["a"]) == {"a"}
    assert states(store, THEIRS) == {"a": (ASKED, 1, 0)}


def test_a_batch_that_no_service_has_is_as_if_it_had_not_been(store: Store) -> None:
    store.batches.claim(FIRST, ["a"])
    store.batches.settle(replace(FIRST, ended_at=200.0), {"a": late(FIRST, "a")})
    store.batches.claim(SECOND, ["a", "b"])
    store.batches.release(SECOND)
    assert store.batches.batch("b2") is None
    assert store.batches.question("b") is None
    again = store.batches.question("a")
    assert again is not None
    assert (again.state, again.tries, again.then) == (FAILED, 1, "ask again")
    assert store.batches.claim(THEIRS, ["a", "b"]) == {"a", "b"}


def test_what_is_in_a_score_is_noted_and_what_a_finished_run_used_is_in_its_scores(store: Store) -> None:
    store.batches.claim(FIRST, ["a", "b"])
    store.batches.settle(replace(FIRST, ended_at=200.0), {key: answered(FIRST, key) for key in "ab"})
    store.batches.charged(["a"])
    assert [one.key for one in store.batches.unsettled("r2")] == ["b"]
    store.batches.charged_all("r1")
    assert list(store.batches.unsettled("r2")) == []


def test_many_questions_are_claimed_and_settled(store: Store) -> None:
    keys = [f"k{i}" for i in range(1500)]
    assert len(store.batches.claim(FIRST, keys)) == 1500
    store.batches.settle(replace(FIRST, ended_at=200.0), {key: answered(FIRST, key) for key in keys})
    assert set(states(store, FIRST).values()) == {(ANSWERED, 1, 1)}
    assert len(store.batches.claim(SECOND, keys)) == 1500
