"""What is kept of lists: nothing while scores may change, and nothing that people change."""

from __future__ import annotations

from collections.abc import Sequence

from vivavoce.features.groups.counting import count_groups
from vivavoce.records.run import Outcome
from vivavoce.store.browse.listing import MOST, Kept
from vivavoce.store.store import Store

from ..cases import FINGERPRINTS, GRADING, RUN
from .test_browse import outcome


async def add(store: Store, outcomes: Sequence[Outcome], *, replaces: bool = False) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS, replaces=replaces) as writer:
        for one in outcomes:
            await writer.put(one)


def end(store: Store, at: float) -> None:
    run, grading = store.run(RUN), store.grading(RUN)
    store.update_grading(grading.model_copy(update={"finished_at": at}))
    store.update_run(run.model_copy(update={"status": "finished", "finished_at": at}))


def answers(store: Store) -> list[object]:
    """Return what every kind of list says."""
    browse = store.browse
    return [
        [one.sample_id for one in browse.samples(GRADING, sort="goal").samples],
        [one.sample_id for one in browse.samples(GRADING, "goal>=0.5").samples],
        browse.count_samples(GRADING, "goal>=0.5"),
        browse.states(GRADING),
        count_groups(store, GRADING, "target"),
        browse.histograms(GRADING, ["goal"]),
    ]


async def test_a_run_that_grows_is_counted_again(store: Store) -> None:
    await add(store, [outcome(1, 0.9)])
    before = answers(store)
    await add(store, [outcome(2, 0.6)])
    after = answers(store)
    assert all(one != other for one, other in zip(before, after, strict=True))


async def test_a_run_that_ended_is_asked_once_and_again_when_it_was_continued(store: Store) -> None:
    await add(store, [outcome(1, 0.9)])
    end(store, 2000.0)
    before = answers(store)
    await add(store, [outcome(2, 0.6)])
    assert answers(store) == before, "nothing is added to a run that ended"
    run = store.run(RUN)
    store.update_run(run.model_copy(update={"status": "running", "finished_at": None}))
    during = answers(store)
    assert all(one != other for one, other in zip(before, during, strict=True))
    end(store, 3000.0)
    assert answers(store) == during


async def test_what_people_leave_is_looked_for_each_time(store: Store) -> None:
    await add(store, [outcome(1, 0.9)])
    end(store, 2000.0)
    assert store.browse.count_samples(GRADING, "has:comment") == 0
    key = outcome(1, 0.9).attempt.key
    store.comments.add(RUN, key, None, "Ida", "odd")
    assert store.browse.count_samples(GRADING, "has:comment") == 1
    assert [one.comments for one in store.browse.samples(GRADING).samples] == [1]


async def test_an_answer_can_be_changed_by_who_got_it(store: Store) -> None:
    await add(store, [outcome(1, 0.9)])
    end(store, 2000.0)
    store.browse.states(GRADING).clear()
    count_groups(store, GRADING, "target").clear()
    store.browse.histograms(GRADING, ["goal"]).clear()
    assert all(store.browse.states(GRADING).values())
    assert count_groups(store, GRADING, "target")
    assert store.browse.histograms(GRADING, ["goal"])


def test_the_answers_asked_for_last_are_kept() -> None:
    kept, asked = Kept(), list[int]()

    def answer(number: int) -> None:
        kept.answer(number, lambda: asked.append(number))

    for number in range(MOST):
        answer(number)
    answer(0)
    answer(MOST)
    assert asked == list(range(MOST + 1))
    answer(0)
    assert len(asked) == MOST + 1, "asked for of late"
    answer(1)
    assert asked[-1] == 1, "the one that was left the longest"
