from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import Label
from vivavoce.records.run import AttemptKey
from vivavoce.store.labels.queues import KEPT, QueuePlan
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN


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
        ({"people": ["Ida\n"], "overlap": 1}, "on one line"),
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
