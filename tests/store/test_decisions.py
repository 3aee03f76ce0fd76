from __future__ import annotations

import asyncio

import pytest

from store import cases
from store.cases import FINGERPRINTS, GRADING, RUN
from vivavoce.errors import NotFound, UsageError
from vivavoce.records.label import Decision, HumanVerdict, Label
from vivavoce.records.run import AttemptKey
from vivavoce.report.label_agreement import agreement_of_all
from vivavoce.store.labels import LabelPlace
from vivavoce.store.store import Store


async def fill(store: Store) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(3):
            await writer.put(cases.outcome(number, number))


def said(number: int, verdict: HumanVerdict, author: str, turn: int | None = None) -> Label:
    """Return a label for the grader `judge`, which fails every conversation."""
    return Label(
        sample_id=f"sample-{number}",
        target="bot",
        trial=0,
        turn=turn,
        grader="judge",
        author=author,
        verdict=verdict,
        created_at=1.0,
    )


def decision(number: int, verdict: HumanVerdict, author: str = "Ada") -> Decision:
    return Decision.model_validate(said(number, verdict, author).model_dump())


@pytest.fixture
def held(store: Store) -> Store:
    """A store where two people differ on sample-1 and on turn 2 of sample-2, and agree on sample-0."""
    asyncio.run(fill(store))
    for one in (said(0, "pass", "Ida"), said(0, "pass", "Olu"), said(0, "unsure", "Eve")):
        store.labels.set(RUN, one)
    for one in (said(1, "pass", "Ida"), said(1, "fail", "Olu"), said(1, "unsure", "Eve")):
        store.labels.set(RUN, one)
    for one in (said(2, "pass", "Ida", 1), said(2, "fail", "Olu", 1), said(2, "fail", "Olu")):
        store.labels.set(RUN, one)
    return store


def test_the_places_where_people_say_both_are_found_with_all_labels_there(held: Store) -> None:
    one, other = held.decisions.differing(RUN, grader="judge")
    assert (one.key, one.turn, one.decision) == (AttemptKey("sample-1", "bot", 0), None, None)
    assert [(label.author, label.verdict) for label in one.labels] == [
        ("Ida", "pass"),
        ("Olu", "fail"),
        ("Eve", "unsure"),
    ]
    assert (other.sample_id, other.turn) == ("sample-2", 1)
    assert held.decisions.differing(RUN, grader="exact") == []
    assert held.decisions.differing("another") == []


def test_a_decision_stands_beside_the_labels_and_replaces_none(held: Store) -> None:
    before = list(held.labels.all(RUN))
    assert held.decisions.set(RUN, decision(1, "fail")) is None
    assert held.decisions.set(RUN, decision(1, "pass", "Eve")) == decision(1, "fail")
    assert held.decisions.all(RUN) == [decision(1, "pass", "Eve")]
    assert held.decisions.differing(RUN)[0].decision == decision(1, "pass", "Eve")
    assert list(held.labels.all(RUN)) == before
    entries = held.audit.entries().entries[:2]
    assert [(one.actor, one.action) for one in entries] == [("Eve", "decision.set"), ("Ada", "decision.set")]
    assert entries[0].detail is not None
    assert entries[0].detail["before"] == {"verdict": "fail", "note": None, "blind": False, "created_at": 1.0}


def test_where_nobody_differs_nothing_is_decided(held: Store) -> None:
    with pytest.raises(UsageError, match="people do not disagree here"):
        held.decisions.set(RUN, decision(0, "fail"))
    with pytest.raises(NotFound):
        held.decisions.set(RUN, decision(7, "fail"))
    assert held.decisions.all(RUN) == []


def test_a_decision_is_taken_back(held: Store) -> None:
    held.decisions.set(RUN, decision(1, "fail"))
    place = LabelPlace.of(RUN, said(1, "fail", "Eve"))
    assert held.decisions.remove(place) == decision(1, "fail")
    with pytest.raises(NotFound, match="no decision has been made here"):
        held.decisions.remove(place)


def test_the_judge_is_compared_with_the_decision_and_people_with_each_other(held: Store) -> None:
    pairs = held.labels.paired(held.grading(RUN), "judge")
    before = agreement_of_all(pairs, held.decisions.all(RUN))
    assert (before.n, before.decided, before.unsure) == (5, 0, 2)
    held.decisions.set(RUN, decision(1, "fail"))
    found = agreement_of_all(pairs, held.decisions.all(RUN))
    assert (found.n, found.decided, found.unsure) == (4, 1, 1)
    assert (found.both_fail, found.too_strict) == (2, 2)
    assert found.people is not None
    assert found.people == before.people
    assert (found.people.n, found.people.same) == (2, 1)
