from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from vivavoce.errors import NotFound, UsageError
from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.label import Decision, Label, Remarks
from vivavoce.records.replies import StoredReply
from vivavoce.records.run import AttemptKey, DrawRecord, Grading, Outcome, Run
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.maintenance import copying
from vivavoce.store.maintenance.copying import Copied
from vivavoce.store.queues import QueuePlan
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN
from ..postgresql import Server

Kept = tuple[Run, list[tuple[Grading, list[Outcome]]]]


def quiet(_run: str, _done: int, _count: int) -> None:
    """Hear nothing."""


def kept(store: Store) -> list[Kept]:
    """Return everything that a store tells of its runs."""

    def sets(run: Run) -> list[tuple[Grading, list[Outcome]]]:
        return [(grading, list(store.outcomes(grading.id))) for grading in store.gradings(run.id)]

    return [(run, sets(run)) for run in store.runs()]


def odd(number: int) -> Outcome:
    """Return a conversation with everything in it that a database might not like."""
    said = "lone \ud800, nul \0, 🎓, \x1a, \\u0000, \\ud800"
    message = AIMessage.model_validate({"content": said, "extra": {"x": [said, 1e308, -0.0]}})
    talk = Trajectory(turns=[Turn(index=0, messages=[HumanMessage(content=said), message])], state={"x": said})
    grade = Score(value=1, reason="r\ud800 ü", ground_truth=said, extra={"x": said})
    drawn = cases.attempt(number, talk, position=number).model_copy(update={"drawn": DrawRecord(number, 0.125)})
    return Outcome(attempt=drawn, scores={"exact": grade})


async def fill(store: Store, start: int, stop: int) -> None:
    async with store.writer(RUN, GRADING, FINGERPRINTS) as writer:
        for number in range(start, stop):
            await writer.put((cases.outcome, odd, cases.unfortunate)[number % 3](number))


async def grade_again(store: Store) -> None:
    store.add_grading(cases.grading("again", created_at=2000))
    async with store.writer(RUN, "again", FINGERPRINTS) as writer:
        for key in store.done(RUN):
            await writer.put_scores(key, cases.scores(7), None)


@pytest.fixture
def target(store: Store, tmp_path: Path, postgresql: Server) -> Iterator[Store]:
    """An empty store of the other kind."""
    with ExitStack() as stack:
        onto = str(tmp_path / "copy.db") if is_postgresql(store.place) else stack.enter_context(postgresql.database())
        yield stack.enter_context(Store.open(onto))


def test_a_copy_in_the_other_kind_of_store_tells_the_same(store: Store, target: Store) -> None:
    asyncio.run(fill(store, 0, 60))
    asyncio.run(grade_again(store))
    store.replies().add([StoredReply("k", "m", '{"text": "\\u0000"}', 1.5)])
    assert store.maintenance.copy_to(target, quiet) == Copied(runs=1, completed=0, attempts=60, replies=1)
    assert kept(target) == kept(store)
    assert list(target.replies().all()) == list(store.replies().all())
    assert [hit.key for hit in target.search("lone")] == [hit.key for hit in store.search("lone")]


def test_how_a_conversation_was_drawn_comes_with_each_of_its_scores(store: Store, target: Store) -> None:
    asyncio.run(fill(store, 0, 3))
    store.maintenance.copy_to(target, quiet)
    for one in (store, target):
        drawn = {row.key.sample_id: row.drawn for row in one.scores(GRADING)}
        assert drawn["sample-1"] == DrawRecord(1, 0.125)
        assert drawn["sample-0"] is None


def test_a_second_copy_adds_what_came_since_and_a_third_nothing(store: Store, target: Store) -> None:
    asyncio.run(fill(store, 0, 10))
    store.maintenance.copy_to(target, quiet)
    asyncio.run(fill(store, 10, 15))
    asyncio.run(grade_again(store))
    store.update_run(cases.run().model_copy(update={"status": "finished", "finished_at": 2.0}))
    store.add_run(cases.run("other", started_at=5.0))
    assert store.maintenance.copy_to(target, quiet) == Copied(runs=1, completed=1, attempts=15, replies=0)
    assert kept(target) == kept(store)
    assert store.maintenance.copy_to(target, quiet) == Copied(runs=0, completed=0, attempts=0, replies=0)


def test_a_copy_that_breaks_off_is_completed_by_another(
    store: Store, target: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "COMMIT", 4)
    asyncio.run(fill(store, 0, 20))

    def stop(_run: str, done: int, _count: int) -> None:
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.maintenance.copy_to(target, stop)
    assert len(target.done(RUN)) == 12
    store.maintenance.copy_to(target, quiet)
    assert kept(target) == kept(store)


def test_what_was_finished_in_the_copy_is_not_undone(store: Store, target: Store) -> None:
    store.maintenance.copy_to(target, quiet)
    ended = cases.run().model_copy(update={"status": "finished", "finished_at": 3.0})
    target.update_run(ended)
    store.maintenance.copy_to(target, quiet)
    assert target.run(RUN) == ended


def test_a_store_that_is_written_meanwhile_loses_nothing_by_a_copy_onto_it(store: Store, target: Store) -> None:
    target.add_run(cases.run("theirs", started_at=5.0))
    store.maintenance.copy_to(target, quiet)
    assert {run.id for run in target.runs()} == {RUN, "theirs"}


def test_two_runs_that_share_an_id_by_accident_are_not_mixed(store: Store, target: Store) -> None:
    target.add_run(cases.run(started_at=77.0))
    with pytest.raises(UsageError, match=f"a different run in .* has the id {RUN}"):
        store.maintenance.copy_to(target, quiet)
    assert target.run(RUN).started_at == 77.0


def test_the_progress_of_each_run_is_told(store: Store, target: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "COMMIT", 2)
    asyncio.run(fill(store, 0, 3))
    told: list[tuple[str, int, int]] = []

    def hear(run: str, done: int, count: int) -> None:
        told.append((run, done, count))

    store.maintenance.copy_to(target, hear)
    assert told == [(RUN, 2, 3), (RUN, 3, 3)]


def test_a_nul_in_plain_text_is_escaped_in_postgresql_for_good(file_store: Store, database: str) -> None:
    one = Outcome(attempt=cases.attempt(1, Trajectory()), scores={"exact": Score(value=1, submission="a\0b")})

    async def put() -> None:
        async with file_store.writer(RUN, GRADING, FINGERPRINTS) as writer:
            await writer.put(one)

    asyncio.run(put())
    with Store.open(database) as target:
        file_store.maintenance.copy_to(target, quiet)
        (found,) = target.outcomes(GRADING)
        assert found.scores["exact"].submission == "a\\u0000b"
        assert file_store.maintenance.copy_to(target, quiet).attempts == 0


def differ(store: Store, key: AttemptKey) -> None:
    said = Label(**key._asdict(), grader="exact", author="Ida", verdict="pass", created_at=1.0)
    store.labels.set(RUN, said)
    store.labels.set(RUN, said.model_copy(update={"author": "Olu", "verdict": "fail"}))


def test_what_people_made_of_runs_is_copied_once(store: Store, target: Store) -> None:
    asyncio.run(fill(store, 0, 4))
    key = min(store.done(RUN))
    differ(store, key)
    said = Decision(**key._asdict(), grader="exact", author="Eve", verdict="fail", created_at=2.0)
    store.decisions.set(RUN, said)
    queue = store.queues.create(store.grading(RUN), QueuePlan("", ["Ida", "Olu"], overlap=2, size=3), "Ada")
    mine = store.queues.begin(store.grading(RUN), QueuePlan("", ["Ida"]), [key])
    store.views.save("Ida", "failing", "/runs/r?filter=state:fail", shared=True)
    store.webhooks.add("https://hooks.example.org/x", ["comment.added"], actor="Ada")
    store.comments.add(RUN, key, None, "Ida", "Look")
    copied = store.maintenance.copy_to(target, quiet)
    assert (copied.decisions, copied.queues, copied.views) == (1, 1, 1)
    assert target.decisions.all(RUN) == [said]
    assert target.queues.all() == [queue]
    assert target.queues.items(queue.id, "Olu") == store.queues.items(queue.id, "Olu")
    with pytest.raises(NotFound):
        target.queues.of(mine.id, "Ida")
    assert [(one.name, one.path, one.shared) for one in target.views.all("Olu")] == [
        ("failing", "/runs/r?filter=state:fail", True)
    ]
    assert target.webhooks.all() == []  # a server of the copy tells nobody what the first store was asked to tell
    again = store.maintenance.copy_to(target, quiet)
    assert again == Copied(runs=0, completed=0, attempts=0, replies=0, left_out=copied.left_out)
    assert dict(again.left_out)["webhook"] == 1


def test_the_newer_decision_and_the_newer_view_stay(store: Store, target: Store) -> None:
    asyncio.run(fill(store, 0, 1))
    key = min(store.done(RUN))
    differ(store, key)
    said = Decision(**key._asdict(), grader="exact", author="Eve", verdict="fail", created_at=2.0)
    store.decisions.set(RUN, said)
    store.views.save("Ida", "mine", "/")
    store.maintenance.copy_to(target, quiet)
    later = said.model_copy(update={"verdict": "pass", "created_at": 3.0})
    target.decisions.set(RUN, later)
    store.views.save("Ida", "mine", "/trends")
    again = store.maintenance.copy_to(target, quiet)
    assert replace(again, left_out=()) == Copied(runs=0, completed=0, attempts=0, replies=0, views=1)
    assert target.decisions.all(RUN) == [later]
    assert [one.path for one in target.views.all("Ida")] == ["/trends"]


def test_what_is_said_of_a_run_is_copied_where_nothing_is_said(store: Store, target: Store) -> None:
    store.update_run(cases.run().model_copy(update={"status": "finished", "finished_at": 2.0}))
    store.maintenance.copy_to(target, quiet)
    target.remark(RUN, Remarks(title="theirs"), "Olu")
    store.remark(RUN, Remarks(title="ours", notes="Looked at", tags=["kept"]), "Ida")
    store.maintenance.copy_to(target, quiet)
    found = target.run(RUN)
    assert (found.title, found.notes, found.tags) == ("theirs", "Looked at", store.run(RUN).tags)
    assert found.status == "finished"
