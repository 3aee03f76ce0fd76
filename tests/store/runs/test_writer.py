from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forked import program
from vivavoce.errors import StoreError
from vivavoce.records.run import AttemptKey, Outcome
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Trajectory
from vivavoce.store.database import group_commit
from vivavoce.store.runs.writer import OutcomeWriter
from vivavoce.store.store import Store

from .. import cases
from ..cases import FINGERPRINTS, GRADING, RUN, begun, outcome

CHILD = [sys.executable, cases.__file__]


def new_writer(store: Store) -> OutcomeWriter:
    return store.writer(RUN, GRADING, FINGERPRINTS)


async def test_what_is_drained_can_be_read(store: Store) -> None:
    async with new_writer(store) as writer:
        for number in range(7):
            await writer.put(outcome(number))
        await writer.drain()
        assert list(store.outcomes(GRADING)) == [outcome(number) for number in range(7)]


async def test_closing_commits_what_is_left(store: Store) -> None:
    writer = new_writer(store)
    for number in range(250):
        await writer.put(outcome(number))
    await writer.close()
    await writer.close()
    assert len(store.done(RUN)) == 250


async def test_an_outcome_is_committed_soon_even_while_the_event_loop_is_busy(store: Store) -> None:
    async with new_writer(store) as writer:
        await writer.put(outcome(1))
        deadline = time.monotonic() + 10
        while not store.done(RUN) and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 - the loop is held up on purpose
        assert store.done(RUN) == {outcome(1).attempt.key}


async def test_a_writer_that_wrote_nothing_closes(store: Store) -> None:
    writer = new_writer(store)
    await writer.drain()
    await writer.close()
    with pytest.raises(StoreError, match="closed"):
        await writer.put(outcome(1))


async def test_put_waits_while_too_many_are_pending(
    file_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "PENDING", 5)
    other = sqlite3.connect(tmp_path / "vivavoce.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    async with new_writer(file_store) as writer:
        for number in range(5):
            await writer.put(outcome(number))
        waiting = asyncio.create_task(writer.put(outcome(5)))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        await waiting
    assert len(file_store.done(RUN)) == 6


async def test_regrading_adds_scores_beside_the_old_ones(store: Store) -> None:
    async with new_writer(store) as writer:
        await writer.put(outcome(1))
    store.add_grading(cases.grading("again", created_at=2000))
    better = {"exact": Score(name="exact", value=0, reason="stricter")}
    async with store.writer(RUN, "again", {}) as writer:
        await writer.put_scores(outcome(1).attempt.key, better, None)
    assert list(store.outcomes(GRADING)) == [outcome(1)]
    assert list(store.outcomes("again")) == [Outcome(attempt=outcome(1).attempt, scores=better)]


async def test_grades_of_an_attempt_that_is_not_there_are_refused_and_the_others_kept(store: Store) -> None:
    writer = new_writer(store)
    await writer.put(outcome(1))
    await writer.put_scores(AttemptKey("sample-9", "bot", 2), cases.scores(9), None)
    await writer.put(outcome(2))
    with pytest.raises(StoreError, match=r"sample 'sample-9#3' \(bot\) was rejected: the run has no such attempt"):
        await writer.close()
    assert store.done(RUN) == {outcome(n).attempt.key for n in (1, 2)}


async def test_an_attempt_that_is_stored_twice_is_refused_and_the_others_kept(store: Store) -> None:
    writer = new_writer(store)
    for number in (1, 1, 2):
        await writer.put(outcome(number))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"already in the store.*\(1 outcome not stored\)"):
            await writer.drain()
    with pytest.raises(StoreError, match="already in the store"):
        await writer.put(outcome(3))
    with pytest.raises(StoreError, match="already in the store"):
        await writer.close()
    assert list(store.outcomes(GRADING)) == [outcome(1), outcome(2)]


async def test_an_outcome_that_cannot_be_written_is_refused_at_once(store: Store) -> None:
    circle: dict[str, object] = {}
    circle["self"] = circle
    bad = outcome(1).model_copy(update={"scores": {"exact": Score(value=1, extra=circle)}})
    async with new_writer(store) as writer:
        with pytest.raises(StoreError, match=r"sample 'sample-1' .* cannot be stored: Circular reference"):
            await writer.put(bad)
        await writer.put(outcome(2))
    assert store.done(RUN) == {outcome(2).attempt.key}


async def test_a_grading_that_is_not_there_is_named(store: Store) -> None:
    writer = store.writer(RUN, "none", {})
    await writer.put(outcome(1))
    with pytest.raises(StoreError, match="its run or its grading is not in the store"):
        await writer.close()
    assert store.done(RUN) == set()


async def test_a_store_that_another_process_holds_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.store.database.sqlite.LOCK_WAIT", 0.05)
    with begun(tmp_path / "x.db") as store:
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writer = new_writer(store)
        await writer.put(outcome(1))
        with pytest.raises(StoreError, match=r"x.db: database is locked: another process .*\(1 outcome not stored\)"):
            await writer.drain()
        with pytest.raises(StoreError, match="locked"):
            await writer.close()
        other.close()


async def test_reading_half_way_does_not_hold_up_the_writer(store: Store) -> None:
    async with new_writer(store) as writer:
        for number in range(40):
            await writer.put(outcome(number))
        await writer.drain()
        reader = store.outcomes(GRADING)
        assert next(reader) == outcome(0)
        await writer.put(outcome(40))
        await writer.drain()
        assert sum(1 for _ in reader) == 40


async def test_a_conversation_of_twenty_megabytes_comes_back(store: Store) -> None:
    long = outcome(1).attempt.trajectory.turns[0]
    words = "viva voce " * 2_000_000
    talk = Trajectory(turns=[long.model_copy(update={"messages": [cases.AIMessage(content=words)]})])
    async with new_writer(store) as writer:
        await writer.put(Outcome(attempt=cases.attempt(1, talk), scores={}))
    (read,) = store.attempts(RUN)
    assert read.trajectory.turns[0].messages[0].content == words


def test_killed_while_writing_every_committed_outcome_is_whole(address: str) -> None:
    begun(address).close()
    with subprocess.Popen([*CHILD, address, "0", "100000"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        committed = int([child.stdout.readline() for _ in range(5)][-1])
        child.kill()
    with Store.open(address) as store:
        found = list(store.outcomes(GRADING))
    assert len(found) >= committed
    assert found == [outcome(number) for number in range(len(found))]


def test_two_processes_write_into_one_store(address: str) -> None:
    begun(address).close()
    child = [program("python"), cases.__file__]
    children = [subprocess.Popen([*child, address, start, "400"]) for start in ("0", "1000")]
    assert [child.wait() for child in children] == [0, 0]
    with Store.open(address) as store:
        numbers = [*range(400), *range(1000, 1400)]
        assert store.done(RUN) == {outcome(number).attempt.key for number in numbers}
        assert sum(1 for _ in store.outcomes(GRADING)) == 800


def test_a_full_disk_is_an_error_and_what_was_committed_stays(tmp_path: Path) -> None:
    path = tmp_path / "vivavoce.db"
    begun(path).close()
    limited = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)); "
    limited += "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    arguments = [sys.executable, "-c", limited, cases.__file__, str(path), "0", "100000"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert "StoreError" in done.stderr
    assert "not stored)" in done.stderr
    with Store.open(str(path)) as store:
        found = list(store.outcomes(GRADING))
    assert len(found) >= int(done.stdout.split()[-1])
    assert found == [outcome(number) for number in range(len(found))]


def test_a_writer_that_is_killed_takes_nothing_of_another_with_it(address: str) -> None:
    begun(address).close()
    with (
        subprocess.Popen([*CHILD, address, "1000", "100000"], stdout=subprocess.PIPE, text=True) as killed,
        subprocess.Popen([*CHILD, address, "0", "200"]) as other,
    ):
        assert killed.stdout is not None
        committed = int(killed.stdout.readline()) - 1000
        killed.kill()
        assert other.wait() == 0
    with Store.open(address) as store:
        numbers = {int(key.sample_id.removeprefix("sample-")) for key in store.done(RUN)}
        found = {one.attempt.key.sample_id: one for one in store.outcomes(GRADING)}
    assert numbers >= set(range(200)) | set(range(1000, 1000 + committed))
    assert found == {f"sample-{number}": outcome(number) for number in numbers}
