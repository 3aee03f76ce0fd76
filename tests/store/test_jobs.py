from __future__ import annotations

import tempfile
import threading
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vivavoce.store.database.database import Fence, Fenced
from vivavoce.store.jobs import KEPT, Claimant, JobRow, marked_request, unmarked_request
from vivavoce.store.runs.claim import Claimed
from vivavoce.store.store import Store

from .cases import FINGERPRINTS, GRADING, RUN, outcome

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


USERS = ("a" * 16, "b" * 16, "c" * 16)


def of_user(store: Store, user: str | None, count: int) -> list[str]:
    """Add jobs of a user, the oldest first."""
    names = [f"{(user or 'nobody')[0]}{number}" for number in range(count)]
    for number, name in enumerate(names):
        request = marked_request('{"kind":"suite"}', user)
        store.jobs.add(job(name, created_at=float(number + len(store.jobs.list(None, 500))), request=request))
    return names


def test_a_request_keeps_its_text_beside_its_user() -> None:
    for user in (*USERS, None):
        assert unmarked_request(marked_request('{"kind":"suite"}', user)) == '{"kind":"suite"}'


def test_users_with_fewer_jobs_at_work_have_their_turn_first(store: Store) -> None:
    first, second, third = (of_user(store, user, count) for user, count in zip(USERS, (6, 2, 1), strict=True))
    claims = [store.jobs.claim(by) for by in (ONE, OTHER) * 5]
    order = [row.id for row in claims if row is not None]
    assert order == [first[0], second[0], third[0], first[1], second[1], *first[2:]]


def test_one_user_leaves_a_place_of_each_server_to_others(store: Store) -> None:
    greedy = of_user(store, USERS[0], 9)
    by, other = replace(ONE, user_limit=3), replace(OTHER, user_limit=3)
    for server in (by, other):
        assert [row.id for _ in range(4) if (row := store.jobs.claim(server))] == [greedy.pop(0) for _ in range(3)]
        assert not store.jobs.claimable(server)
    (modest,) = of_user(store, USERS[1], 1)
    row = store.jobs.claim(by)
    assert row is not None
    assert row.id == modest
    cancelled = store.jobs.claim(by, greedy[0])  # to record that somebody cancelled it
    assert cancelled is not None


def test_jobs_of_a_server_without_users_have_their_turn_by_age(store: Store) -> None:
    names = of_user(store, None, 6)
    claims = [store.jobs.claim(replace(ONE, user_limit=3)) for _ in names]
    assert [row.id for row in claims if row] == names


@settings(max_examples=25)
@given(st.lists(st.sampled_from(USERS), min_size=1, max_size=12), st.integers(1, 5))
def test_no_user_waits_for_one_who_has_more_jobs_at_work(users: list[str], places: int) -> None:
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/jobs.db") as store:
        for number, user in enumerate(users):
            store.jobs.add(job(f"j{number:02}", created_at=float(number), request=marked_request("{}", user)))
        at_work = Counter[str]()
        waiting = Counter(users)
        for _ in range(places):
            row = store.jobs.claim(replace(ONE, user_limit=3))
            may = [user for user in USERS if waiting[user] and at_work[user] < 3]
            assert (row is None) == (not may)
            if row is not None:
                user = users[int(row.id[1:])]
                assert at_work[user] == min(at_work[other] for other in may)
                at_work[user] += 1
                waiting[user] -= 1
        for user in USERS:
            assert store.jobs.unfinished(user) == users.count(user)
