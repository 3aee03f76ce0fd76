"""Calibrations in the store: found by fingerprint, kept when their run is deleted, copied once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from store import cases
from store.cases import FINGERPRINTS, GRADING, RUN, outcome
from store.test_labels import quiet
from vivavoce.errors import NotFound
from vivavoce.records.label import LabelledVerdict
from vivavoce.store.calibrations import new_calibration
from vivavoce.store.labels import Truth
from vivavoce.store.store import Store


@pytest.fixture
def held(store: Store) -> Store:
    """A store with three conversations."""

    async def fill() -> None:
        async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            for number in range(3):
                await writer.put(outcome(number, number))

    asyncio.run(fill())
    return store


def made(held: Store, **more: Any) -> Any:
    said = LabelledVerdict(
        sample_id="sample-1", target="bot", trial=0, good=True, passed=False, score=0.25, confidence=0.5, drawn=0.5
    )
    truth = Truth([said], unsure=1, split=2, unscored=3)
    return new_calibration(held.grading(RUN), "judge", truth, "people", "Ida").model_copy(update=more)


def test_it_is_found_by_run_grader_and_fingerprint(held: Store) -> None:
    older, newer = made(held, created_at=1.0), made(held, created_at=2.0)
    for one in (older, newer):
        held.calibrations.add(one)
    assert held.calibrations.of_run(RUN) == [newer, older]
    assert held.calibrations.of_run(RUN, "exact") == []
    assert held.calibrations.with_fingerprints(["f2", "f9"]) == [newer, older]
    assert held.calibrations.with_fingerprints([]) == []
    assert [one.action for one in held.audit.entries().entries][:2] == ["calibration.keep"] * 2
    assert (newer.unsure, newer.split, newer.unscored, newer.drawn_labels) == (1, 2, 3, newer.labels)


def test_one_of_another_judge_is_stale(held: Store) -> None:
    held.calibrations.add(made(held, fingerprint="before"))
    assert held.calibrations.stale("support", held.grading(RUN)) == {"judge": RUN}
    assert held.calibrations.stale("another suite", held.grading(RUN)) == {}
    held.calibrations.add(made(held))
    assert held.calibrations.stale("support", held.grading(RUN)) == {}


def test_verdicts_are_those_of_whole_conversations(held: Store) -> None:
    found = sorted(held.calibrations.verdicts(held.grading(RUN), "judge"))
    assert [tuple(one) for one in found] == [(f"sample-{n}", "bot", 0, False, 0.25, 0.5, None) for n in range(3)]
    assert len(held.calibrations.verdicts(held.grading(RUN), "exact")) == 3, "its turns are not among them"


def test_a_grader_that_is_not_there_is_refused(held: Store) -> None:
    with pytest.raises(NotFound, match="gaol"):
        new_calibration(held.grading(RUN), "gaol", Truth(), "people", "Ida")


def test_it_stays_when_its_run_is_deleted_and_is_copied_once(held: Store, tmp_path: Path) -> None:
    one = made(held)
    held.calibrations.add(one)
    with Store.open(str(tmp_path / "other.db")) as other:
        assert held.maintenance.copy_to(other, quiet).calibrations == 1
        assert held.maintenance.copy_to(other, quiet).calibrations == 0
        assert other.calibrations.of_run(RUN) == [one]
    held.update_run(cases.run().model_copy(update={"status": "finished"}))
    held.maintenance.delete_run(RUN, "Ida")
    assert held.calibrations.with_fingerprints(["f2"]) == [one]
