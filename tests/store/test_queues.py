"""Which conversations people are asked to label, in which order, and how likely each was to be drawn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from store import cases
from store.cases import FINGERPRINTS, GRADING, RUN, outcome
from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score, skipped
from vivavoce.store.queues import KEPT, QueuePlan, Verdict, weighted
from vivavoce.store.store import Store

POPULATION = [Verdict(n, passed=n >= 4, confidence=0.99 if n % 2 else 0.6) for n in range(40)]


@pytest.fixture
def drawn_from(store: Store) -> Store:
    """A store with six conversations."""

    async def fill() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number in range(6):
                await writer.put(outcome(number, number))

    asyncio.run(fill())
    return store


def label(sample: str, **more: Any) -> Label:
    said = Label(sample_id=sample, target="bot", trial=0, author="Ida", verdict="fail", created_at=5.0)
    return said.model_copy(update={"grader": "judge", **more})


def queue(drawn_from: Store, **more: Any) -> tuple[str, list[AttemptKey]]:
    made = drawn_from.queues.create(drawn_from.grading(RUN), QueuePlan("judge", ["Ida"], size=6, **more), "Ida")
    return made.id, drawn_from.queues.items(made.id, "Ida")


def drawn(drawn_from: Store) -> dict[str, float | None]:
    return {one.sample_id: one.drawn for one in drawn_from.labels.all(RUN)}


def test_a_label_in_a_blind_random_queue_is_of_a_drawn_conversation(drawn_from: Store) -> None:
    name, items = queue(drawn_from)
    drawn_from.labels.set(RUN, label(items[0].sample_id), queue=name)
    drawn_from.labels.set(RUN, label(items[1].sample_id))
    assert drawn(drawn_from) == {items[0].sample_id: 1.0, items[1].sample_id: None}


@pytest.mark.parametrize("plan", [{"blind": False}, {"selection": "disagreement"}])
def test_no_other_queue_draws(drawn_from: Store, plan: dict[str, Any]) -> None:
    name, items = queue(drawn_from, **plan)
    drawn_from.labels.set(RUN, label(items[0].sample_id), queue=name)
    assert drawn(drawn_from) == {items[0].sample_id: None}


def test_what_was_labelled_before_counts_as_drawn_when_the_queue_has_come_past_it(drawn_from: Store) -> None:
    name, items = queue(drawn_from)
    for place in (1, 4):
        drawn_from.labels.set(RUN, label(items[place].sample_id))
    drawn_from.labels.set(RUN, label(items[2].sample_id), queue=name)
    assert drawn(drawn_from) == {items[1].sample_id: 1.0, items[2].sample_id: 1.0, items[4].sample_id: None}


def test_a_second_thought_on_another_page_is_still_about_a_drawn_conversation(drawn_from: Store) -> None:
    name, items = queue(drawn_from)
    drawn_from.labels.set(RUN, label(items[0].sample_id, blind=True), queue=name)
    drawn_from.labels.set(RUN, label(items[0].sample_id, verdict="pass"))
    (found,) = drawn_from.labels.all(RUN)
    assert (found.verdict, found.drawn, found.blind) == ("pass", 1.0, False)


def test_a_queue_that_does_not_ask_for_it_is_refused(drawn_from: Store) -> None:
    name, items = queue(drawn_from)
    for more in ({"author": "Olu"}, {"turn": 1}, {"grader": "exact"}):
        with pytest.raises(NotFound, match="does not ask"):
            drawn_from.labels.set(RUN, label(items[0].sample_id, **more), queue=name)
    with pytest.raises(NotFound):
        drawn_from.labels.set(RUN, label(items[0].sample_id), queue="q-nobody")
    assert drawn(drawn_from) == {}


def test_a_weighted_queue_keeps_how_likely_each_was(drawn_from: Store) -> None:
    name, items = queue(drawn_from, selection="weighted")
    assert len(items) == 6
    for item in items:
        drawn_from.labels.set(RUN, label(item.sample_id), queue=name)
    assert set(drawn(drawn_from).values()) == {1.0}, "all were drawn, so all were as likely"


def test_each_is_drawn_as_often_as_is_said() -> None:
    draws, size = 4000, 10
    times: Counter[int] = Counter()
    said: dict[int, float | None] = {}
    for seed in range(draws):
        found = weighted(POPULATION, size, seed)
        assert len({number for number, _ in found}) == len(found) == size
        times.update(number for number, _ in found)
        said.update(found)
    for number, likely in said.items():
        assert likely is not None
        expected = likely * size / len(POPULATION)
        assert times[number] / draws == pytest.approx(expected, abs=0.04)
    assert min(said[n] or 0 for n in range(4)) > 2, "failures are rare, and drawn more often"
    assert (said[4] or 0) > (said[5] or 0), "and so is what the judge is unsure of"
    assert min(one or 0 for one in said.values()) >= 1 / 3


def test_weights_undo_the_choice() -> None:
    failed = [sum((n < 4) / (p or 1) for n, p in weighted(POPULATION, 10, seed)) / 10 for seed in range(4000)]
    assert sum(failed) / len(failed) == pytest.approx(0.1, abs=0.003)


def test_more_than_there_are_draws_each_once() -> None:
    assert sorted(weighted(POPULATION, 99, 1)) == [(one.attempt_id, pytest.approx(1.0)) for one in POPULATION]
    assert weighted([], 5, 1) == []
    same = [Verdict(n, passed=True, confidence=None) for n in range(9)]
    assert [likely for _, likely in weighted(same, 3, 1)] == [pytest.approx(1.0)] * 3


def keep(store: Store, grades: Sequence[Score]) -> None:
    """Keep conversations with these grades."""

    async def put() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number, grade in enumerate(grades):
                attempt = cases.outcome(number, number).attempt
                await writer.put(Outcome(attempt=attempt, scores={"judge": grade}))

    asyncio.run(put())


def numbers(keys: Sequence[AttemptKey]) -> list[int]:
    return [int(key.sample_id.removeprefix("sample-")) for key in keys]


def graded(score: float, passed: bool | None = None, **extra: Any) -> Score:
    return Score(value=score, passed=passed, extra=extra)


def test_scores_near_to_where_passing_begins_come_first(store: Store) -> None:
    keep(store, [graded(score, passed=score >= 0.6) for score in (0.0, 0.5, 1.0, 0.65, 0.2)])
    found = numbers(store.labels.in_doubt(store.grading(RUN), "judge"))
    assert (set(found[:2]), found[2:]) == ({1, 3}, [4, 2, 0])


def test_votes_that_were_split_come_before_all_others_the_closest_first(store: Store) -> None:
    shares = (1.0, 0.8, 1.0, 0.6)
    keep(store, [graded(1.0, agreement=share, votes=[]) for share in shares])
    assert numbers(store.labels.in_doubt(store.grading(RUN), "judge")) == [3, 1, 0, 2]


def test_what_has_no_score_is_not_asked_about(store: Store) -> None:
    keep(store, [graded(1.0), skipped("no judge"), graded(0.0)])
    grading = store.grading(RUN)
    assert numbers(store.labels.in_doubt(grading, "judge")) == [0, 2]
    assert sorted(numbers(store.labels.at_random(grading, "judge", 3))) == [0, 2]
    assert store.labels.in_doubt(grading, "another") == []


def test_only_so_many_are_put_in_order(store: Store) -> None:
    keep(store, [graded(number / 10) for number in range(10)])
    grading = store.grading(RUN)
    assert numbers(store.labels.in_doubt(grading, "judge", 2)) == [9, 8]
    assert len(store.labels.at_random(grading, "judge", 3, 4)) == 4


def test_a_seed_always_draws_the_same_and_another_seed_something_else(store: Store) -> None:
    keep(store, [graded(1.0) for _ in range(30)])
    grading = store.grading(RUN)
    first = numbers(store.labels.at_random(grading, "judge", 3))
    assert sorted(first) == list(range(30))
    assert numbers(store.labels.at_random(grading, "judge", 3)) == first
    assert numbers(store.labels.at_random(grading, "judge", 4)) != first


def test_without_a_grader_any_conversation_is_drawn(store: Store) -> None:
    keep(store, [skipped("no judge")])
    assert numbers(store.labels.at_random(store.grading(RUN), "", 1)) == [0]


async def fill(store: Store, *, replaces: bool = False) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS, replaces=replaces) as writer:
        for number in range(5):
            await writer.put(cases.outcome(number, number))


@pytest.fixture
def held(store: Store) -> Store:
    """A store with five conversations."""
    asyncio.run(fill(store))
    return store


def plan(**more: Any) -> QueuePlan:
    return replace(QueuePlan("judge", ["Ida", "Olu", "Eve"], overlap=2, size=5), **more)


def test_conversations_are_dealt_in_turns_so_that_each_has_its_people(held: Store) -> None:
    made = held.queues.create(held.grading(RUN), plan(), "Ada")
    assert (made.items, made.overlap, made.author, made.blind) == (5, 2, "Ada", True)
    assert sorted(one.assigned for one in made.people) == [3, 3, 4]
    shares = {one.person: held.queues.items(made.id, one.person) for one in made.people}
    every = [key for share in shares.values() for key in share]
    assert len(set(every)) == 5
    assert {every.count(key) for key in every} == {2}
    assert held.queues.items(made.id, "Nobody") == []
    assert held.audit.entries().entries[0].action == "queue.create"


def test_progress_counts_the_labels_of_each_person_for_this_question(held: Store) -> None:
    made = held.queues.create(held.grading(RUN), plan(overlap=3), "Ada")
    key = held.queues.items(made.id, "Ida")[0]
    said = Label(**key._asdict(), grader="judge", author="Ida", verdict="pass", created_at=1.0)
    held.labels.set(RUN, said)
    held.labels.set(RUN, said.model_copy(update={"turn": 0}))
    held.labels.set(RUN, said.model_copy(update={"grader": "exact", "author": "Olu"}))
    found = held.queues.get(made.id)
    assert [(one.person, one.done, one.assigned) for one in found.people] == [
        ("Eve", 0, 5),
        ("Ida", 1, 5),
        ("Olu", 0, 5),
    ]


def test_queues_are_found_by_run_and_by_person_newest_first(held: Store) -> None:
    first = held.queues.create(held.grading(RUN), plan(people=["Ida"], overlap=1), "Ada")
    second = held.queues.create(held.grading(RUN), plan(people=["Olu"], overlap=1, grader=""), "Ada")
    assert [one.id for one in held.queues.all(run_id=RUN)] == [second.id, first.id]
    assert [one.id for one in held.queues.all(person="Ida")] == [first.id]
    assert held.queues.all(run_id="another") == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"people": []}, "name 1 to 50 people"),
        ({"people": ["Ida", "Ida"]}, "each once"),
        ({"people": ["Ida\n"], "overlap": 1}, "one line"),
        ({"overlap": 4}, "1 to 3 here"),
        ({"overlap": 0}, "1 to 3 here"),
        ({"size": 501}, "1 to 500"),
        ({"grader": "other"}, "no conversation of this run has a score"),
    ],
)
def test_what_cannot_be_dealt_is_refused(held: Store, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        held.queues.create(held.grading(RUN), plan(**wrong), "Ada")
    assert held.queues.all() == []


def test_another_server_of_the_store_has_the_queue(held: Store) -> None:
    made = held.queues.create(held.grading(RUN), plan(selection="disagreement"), "Ada")
    with Store.open(held.place) as other:
        assert other.queues.get(made.id) == made
        assert other.queues.items(made.id, "Ida") == held.queues.items(made.id, "Ida")


def test_a_queue_survives_another_try_and_goes_when_it_or_its_run_is_deleted(held: Store) -> None:
    made = held.queues.create(held.grading(RUN), plan(), "Ada")
    before = held.queues.items(made.id, "Ida")
    asyncio.run(fill(held, replaces=True))
    assert held.queues.items(made.id, "Ida") == before
    assert held.queues.delete(made.id, "Ada") == made
    with pytest.raises(NotFound):
        held.queues.get(made.id)
    held.queues.create(held.grading(RUN), plan(), "Ada")
    held.maintenance.delete_run(RUN, "Ada")
    assert held.queues.all() == []


def test_a_queue_that_somebody_begins_is_theirs_alone_and_in_no_list(held: Store) -> None:
    keys = sorted(held.done(RUN), reverse=True)
    made = held.queues.begin(held.grading(RUN), plan(people=["Ida"], selection="disagreement", seed=7), keys)
    assert (made.items, made.grader, made.selection, made.seed, made.blind) == (keys, "judge", "disagreement", 7, True)
    with Store.open(held.place) as other:
        assert other.queues.of(made.id, "Ida") == made
        with pytest.raises(NotFound, match="or it is another user's"):
            other.queues.of(made.id, "Olu")
    assert held.queues.all() == []
    with pytest.raises(NotFound):
        held.queues.get(made.id)
    with pytest.raises(NotFound):
        held.queues.delete(made.id, "Ida")


def test_of_the_queues_that_somebody_begins_the_newest_are_kept(held: Store) -> None:
    grading, keys = held.grading(RUN), sorted(held.done(RUN))
    assigned = held.queues.create(grading, plan(), "Ida")
    theirs = held.queues.begin(grading, plan(people=["Olu"]), keys)
    made = [held.queues.begin(grading, plan(people=["Ida"]), keys) for _ in range(KEPT + 1)]
    with pytest.raises(NotFound, match="newer ones took its place"):
        held.queues.of(made[0].id, "Ida")
    assert [held.queues.of(one.id, "Ida") for one in made[1:]] == made[1:]
    assert held.queues.of(theirs.id, "Olu") == theirs
    assert held.queues.all() == [assigned]


def test_a_queue_without_conversations_is_refused(held: Store) -> None:
    for keys in ([], [AttemptKey("deleted", "", 0)]):
        with pytest.raises(UsageError, match="no conversation of this run has a score"):
            held.queues.begin(held.grading(RUN), plan(people=["Ida"]), keys)
