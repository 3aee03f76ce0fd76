from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from vivavoce.store.database.fence import Fence, Fenced
from vivavoce.store.jobs.queue import KEPT, Claimant, JobRow
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store

from ..cases import FINGERPRINTS, GRADING, RUN, outcome

ONE = Claimant("one", "/suites", 1000)
OTHER = Claimant("other", "/suites", 1000)


def job(name: str, **more: object) -> JobRow:
    made = JobRow(id=name, folder="/suites", kind="suite", created_at=1.0, request="{}")
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


def test_the_same_key_has_one_job_in_a_folder(store: Store) -> None:
    assert store.jobs.add(job("a", key="k"), "rows") is None
    first = store.jobs.add(job("b", key="k"), "rows")
    assert (first and first.id, store.jobs.get("b")) == ("a", None)
    assert store.jobs.add(job("c", key="k", folder="/elsewhere")) is None
    assert [one.id for one in store.jobs.list(None, 10)] == ["c", "a"]
    assert [one.id for one in store.jobs.list(store.jobs.get("c"), 10)] == ["a"]


def test_a_job_is_claimed_once_and_by_servers_of_its_folder(store: Store) -> None:
    for number in range(20):
        store.jobs.add(job(f"j{number:02}"))
    store.jobs.add(job("elsewhere", folder="/elsewhere"))
    found: list[str] = []

    def work(by: Claimant) -> None:
        while (row := store.jobs.claim(by)) is not None:
            found.append(row.id)

    threads = [threading.Thread(target=work, args=(replace(ONE, name=f"server-{n}"),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"j{number:02}" for number in range(20)]
    assert not store.jobs.claimable(ONE)


def test_a_job_is_free_once_its_lease_is_over_or_its_owner_has_ended(store: Store) -> None:
    store.jobs.add(job("a"))
    claimed = store.jobs.claim(ONE)
    assert claimed is not None
    assert (claimed.owner, claimed.fence) == ("one", 1)
    with store.jobs.present("one"):
        assert store.jobs.dead("other") == set()
        assert store.jobs.claim(OTHER) is None
    assert store.jobs.dead("other") == {"one"}
    again = store.jobs.claim(replace(OTHER, dead={"one"}))
    assert again is not None
    assert again.fence == 2
    store.jobs.renew("other", -1)
    third = store.jobs.claim(ONE)
    assert third is not None
    assert third.fence == 3


async def test_who_lost_a_job_writes_nothing_more(store: Store) -> None:
    store.jobs.add(job("a"))
    store.jobs.claim(ONE)
    mine = store.fenced(Fence("a", 1))
    async with mine.writer(RUN, GRADING, FINGERPRINTS) as writer:
        await writer.put(outcome(0))
    lost = mine.writer(RUN, GRADING, FINGERPRINTS)
    store.jobs.claim(replace(OTHER, dead={"one"}))
    await lost.put(outcome(1))
    with pytest.raises(Exception, match="taken over by another server"):
        await lost.close()
    with pytest.raises(Fenced):
        mine.update_run(mine.run(RUN))
    with pytest.raises(Fenced):
        store.jobs.save("a", 1, {"done": 9})
    assert store.counts(RUN)[0] == 1
    async with store.fenced(Fence("a", 2)).writer(RUN, GRADING, FINGERPRINTS) as writer:
        await writer.put(outcome(1))
    assert store.counts(RUN)[0] == 2


def test_a_run_is_held_by_a_job_or_by_a_process_and_never_by_both(store: Store) -> None:
    for name in "ab":
        store.jobs.add(job(name))
    store.jobs.claim(ONE)
    store.jobs.claim(ONE)
    first, second = store.fenced(Fence("a", 1)), store.fenced(Fence("b", 1))
    with store.jobs.present("one"):
        with first.claimed(RUN):
            assert store.held(RUN)
            for other in (store, second):
                with pytest.raises(Claimed), other.claimed(RUN):
                    pass
            store.jobs.claim(replace(OTHER, dead={"one"}))
            with pytest.raises(Claimed), store.jobs.present("one"):
                pass
        assert not store.held(RUN)
        with store.claimed(RUN), pytest.raises(Claimed), second.claimed(RUN):
            pass


def test_the_newest_events_are_kept(store: Store) -> None:
    store.jobs.add(job("a"))
    store.jobs.claim(ONE)
    for last in (5, 10, KEPT + 6):
        store.jobs.save("a", 1, {"done": last}, f"[{last}]", last)
    assert store.jobs.events("a", 0) == ["[10]", f"[{KEPT + 6}]"]
    assert store.jobs.events("a", 10) == [f"[{KEPT + 6}]"]
    assert (store.jobs.forget_events("a"), store.jobs.events("a", 0)) == (KEPT + 6, [])


def test_what_came_with_a_job_is_there_for_its_run_until_it_is_finished_or_the_run_deleted(store: Store) -> None:
    store.jobs.add(job("a", run=RUN), "said")
    store.jobs.add(job("b", run=RUN))
    later = store.jobs.get("b")
    assert later is not None
    assert store.jobs.inputs(later) == {"a": "said"}
    store.jobs.save("a", 0, {"status": "interrupted"}, "[]", 1)
    assert store.jobs.inputs(later) == {"a": "said"}
    store.maintenance.delete_run(RUN, "ida")
    assert (store.jobs.inputs(later), store.jobs.events("a", 0)) == ({}, [])
    store.jobs.add(job("c"), "said")
    store.jobs.save("c", 0, {"status": "finished"})
    assert store.jobs.inputs(job("c")) == {}


def test_a_job_that_is_over_is_not_cancelled(store: Store) -> None:
    store.jobs.add(job("a"))
    assert [store.jobs.cancel("a") for _ in range(2)] == [1, 2]
    store.jobs.save("a", 0, {"status": "interrupted"})
    assert store.jobs.cancel("a") == 2
    assert store.jobs.unfinished() == 0
