"""`Maintenance`: the content of a store, deleting runs, and copying everything into another store."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import func, select

from vivavoce.errors import UsageError
from vivavoce.records.replies import StoredReply
from vivavoce.store.database.address import is_postgresql
from vivavoce.store.database.schema import HEAD, metadata
from vivavoce.store.maintenance.maintenance import Collected
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS


async def hold(store: Store, run_id: str, started_at: float, status: str = "finished") -> None:
    """Keep a run that took a second, with three conversations, and a reply."""
    run = cases.run(run_id, started_at)
    store.add_run(run.model_copy(update={"status": status, "finished_at": started_at + 1}))
    store.add_grading(cases.grading(f"{run_id}.1", run_id))
    async with store.writer(run_id, f"{run_id}.1", FINGERPRINTS) as writer:
        for number in range(3):
            await writer.put(cases.outcome(number))
    store.replies().add([StoredReply(run_id, "m", "{}", started_at + 0.5)])


@pytest.fixture
def three(address: str) -> Store:
    """A store with the finished runs `old`, `middle` and `new`, all searched."""
    store = Store.open(address)
    for run_id, started_at in (("old", 100.0), ("middle", 200.0), ("new", 300.0)):
        asyncio.run(hold(store, run_id, started_at))
    assert len(store.search("Flight", limit=99)) == 9
    return store


def rows(store: Store) -> dict[str, int]:
    """Return how many rows each table has."""
    with store.database.engine.connect() as connection:
        return {
            name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }


def test_all_but_the_newest_runs_are_deleted_with_everything_that_belongs_to_them(three: Store) -> None:
    with three as store:
        before = rows(store)
        assert store.maintenance.collect(keep_last=1) == Collected(("old", "middle"), 2)
        assert [run.id for run in store.runs()] == ["new"]
        assert len(list(store.outcomes("new.1"))) == 3
        assert [reply.key for reply in store.replies().all()] == ["new"]
        store.search("Flight")
        assert rows(store) == {name: number // 3 for name, number in before.items()} | {"audit": 2}


def test_who_deletes_runs_is_noted(three: Store) -> None:
    with three as store:
        store.maintenance.collect(keep_last=1, dry_run=True, actor="ida")
        store.maintenance.collect(keep_last=2, actor="ida")
        store.maintenance.delete_run("new", "bo")
        told = [(one.actor, one.action, one.subject) for one in store.audit.entries().entries]
    assert told == [("bo", "run.delete", "new"), ("ida", "run.delete", "old")]


def test_one_run_is_deleted_by_its_whole_name_unless_somebody_works_on_it(three: Store) -> None:
    with three as store:
        for name in ("latest", "mid", "nothing"):
            with pytest.raises(UsageError, match="no run"):
                store.maintenance.delete_run(name, "ida")
        with store.claimed("middle"), pytest.raises(Claimed, match="another process is working on"):
            store.maintenance.delete_run("middle", "ida")
        store.maintenance.delete_run("middle", "ida")
        assert [run.id for run in store.runs()] == ["new", "old"]
        assert len(store.search("Flight", limit=99)) == 6


def test_a_dry_run_says_the_same_and_deletes_nothing(three: Store) -> None:
    with three as store:
        before = rows(store)
        assert store.maintenance.collect(keep_last=1, dry_run=True) == Collected(("old", "middle"), 2)
        assert rows(store) == before


def test_runs_that_ended_before_a_time_are_deleted(three: Store) -> None:
    with three as store:
        assert store.maintenance.collect(before=201.0) == Collected(("old",), 1)
        assert store.maintenance.collect(before=201.5) == Collected(("middle",), 1)
        assert store.maintenance.collect(before=201.5) == Collected((), 0)


def test_a_run_that_is_graded_again_stays(three: Store) -> None:
    with three as store, store.claimed("old"):
        assert store.maintenance.collect(keep_last=1).runs == ("middle",)
        assert [run.id for run in store.runs()] == ["new", "old"]


def test_a_run_that_goes_on_or_may_be_resumed_stays_and_so_do_the_replies_since(address: str) -> None:
    with Store.open(address) as store:
        asyncio.run(hold(store, "going on", 100.0, "running"))
        asyncio.run(hold(store, "broken off", 200.0, "interrupted"))
        asyncio.run(hold(store, "done", 300.0))
        with store.claimed("going on"):
            assert store.maintenance.collect(keep_last=0) == Collected(("done",), 0, ("broken off",))
        assert store.maintenance.collect(keep_last=0) == Collected((), 0, ("going on", "broken off"))
        assert {run.id for run in store.runs()} == {"going on", "broken off"}


def test_what_is_deleted_is_not_found_and_what_stays_is(three: Store) -> None:
    with three as store:
        for left in (2, 1, 0):
            store.maintenance.collect(keep_last=left)
            assert len(store.search("Flight", limit=99)) == left * 3
            assert len(store.search("judge short", limit=99)) == 0
            assert len(store.search("too short", limit=99)) == left * 3
        asyncio.run(hold(store, "again", 400.0))
        assert len(store.search("Flight", limit=99)) == 3


def test_the_contents_are_counted_and_measured(three: Store) -> None:
    with three as store:
        found = store.maintenance.contents()
        assert (found.place, found.schema) == (store.place, HEAD)
        runs = {"runs": 3, "gradings": 3, "attempts": 9, "turns": 18, "scores": 36}
        assert found.rows == {**runs, "labels": 0, "comments": 0, "replies": 3}
        assert found.bytes > 100_000
        if not is_postgresql(store.place):
            assert "/" in found.place
