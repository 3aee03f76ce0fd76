from __future__ import annotations

import asyncio
import itertools
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from vivavoce.errors import StoreError, UsageError
from vivavoce.server import jobs as module
from vivavoce.server.job import Job, JobNews
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import EvaluationJob, ResumeJob, SuiteJob
from vivavoce.server.jobs import Jobs, OtherBody, TooManyJobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.database import schema as tables
from vivavoce.store.jobs import KEPT_BYTES, JobQueue, JobRow
from vivavoce.store.store import Store

from .api.test_jobs import breaking_suite

TALK = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
ONE = EvaluationJob(conversations=[{"id": "x", "messages": TALK}], metrics=["refusal"])


def test_the_store_has_neither_the_key_of_a_job_nor_in_the_end_what_came_with_it(store: Store, workspace: Path) -> None:
    jobs = Jobs(store, ServerPolicy(workspace))
    record = jobs.submit(ONE, "secret-key")
    asyncio.run(told_by(jobs, record.id))
    jobs.close()
    with store.database.connected() as connection:
        rows = [str(row) for table in (tables.jobs, tables.job_inputs) for row in connection.execute(select(table))]
    assert len(rows) == 1
    assert "secret-key" not in rows[0]
    assert "hello" not in rows[0]


def test_a_thousand_requests_with_one_key_begin_one_job(store: Store, workspace: Path) -> None:
    jobs = Jobs(store, ServerPolicy(workspace))
    found: set[str] = set()
    threads = [threading.Thread(target=lambda: found.add(jobs.submit(ONE, "k").id)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs.close()
    assert len(found) == len(jobs.list()) == 1
    with pytest.raises(OtherBody):
        jobs.submit(ONE.model_copy(update={"metrics": ["repetition"]}), "k")


def test_more_jobs_than_can_wait_are_refused(store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 0)
    with pytest.raises(TooManyJobs):
        Jobs(store, ServerPolicy(workspace)).submit(ONE)


def test_a_job_whose_conversations_cannot_be_kept_is_not_begun(store: Store, workspace: Path) -> None:
    (workspace / ".vivavoce" / "jobs").write_text("in the way")
    jobs = Jobs(store, ServerPolicy(workspace))
    with pytest.raises(StoreError, match="cannot be saved"):
        jobs.submit(ONE)
    assert jobs.list() == []
    assert len(store.runs()) == 1


def test_only_runs_of_jobs_are_resumed(store: Store, workspace: Path) -> None:
    jobs = Jobs(store, ServerPolicy(workspace))
    with pytest.raises(UsageError, match="was not started by a job"):
        jobs.submit(ResumeJob(resume="latest"))
    with pytest.raises(UsageError, match="no run"):
        jobs.submit(ResumeJob(resume="nothing"))


async def test_the_end_is_heard_by_one_who_looks_while_it_is_written_down() -> None:
    writing, written = threading.Event(), threading.Event()

    def changed(job: Job) -> None:
        del job
        writing.set()
        written.wait(30)

    job = Job(JobRecord(id="j", kind="suite", created_at=0), changed)
    ending = asyncio.create_task(asyncio.to_thread(partial(job.end, status="finished")))
    await asyncio.to_thread(writing.wait, 30)
    following = asyncio.create_task(told(job))
    await asyncio.sleep(0)  # it looks
    written.set()
    await ending
    assert await following == ["ended"]


async def told(job: Job) -> list[str]:
    return [event.kind async for frames in job.follow() for event in frames]


async def told_by(jobs: Jobs, job_id: str) -> list[str]:
    return [event.kind async for frames in jobs.follow(job_id) for event in frames]


def test_the_end_is_told_also_where_it_cannot_be_written_down() -> None:
    def changed(job: Job) -> None:
        raise StoreError("the disk is full")

    job = Job(JobRecord(id="j", kind="suite", created_at=0), changed)
    with pytest.raises(StoreError):
        job.end(status="finished")
    assert [event.kind for event in job.since(0)] == ["ended"]


def test_a_suite_that_cannot_run_is_refused_and_leaves_nothing(store: Store, workspace: Path) -> None:
    suite = (workspace / "suites" / "refunds.yaml").read_text()
    (workspace / "broken.yaml").write_text(suite.replace("bot.py:reply", "none.py:reply"))
    jobs = Jobs(store, ServerPolicy(workspace))
    with pytest.raises(UsageError, match=r"none\.py"):
        jobs.submit(SuiteJob(suite="broken.yaml"))
    assert jobs.list() == []
    assert not list((workspace / ".vivavoce").glob("jobs/*"))


def test_a_suite_that_breaks_when_it_begins_fails_its_job_and_says_why(store: Store, workspace: Path) -> None:
    jobs = Jobs(store, ServerPolicy(workspace))
    record = jobs.submit(SuiteJob.model_validate(breaking_suite(workspace)))
    assert asyncio.run(told_by(jobs, record.id)) == ["ended"]
    job = jobs.get(record.id)
    assert (job.record.status, job.record.run) == ("failed", None)
    assert "lacks a database" in (job.record.detail or "")
    jobs.close()


def test_nobody_waits_while_a_request_is_checked(store: Store, workspace: Path) -> None:
    suite = (workspace / "suites" / "refunds.yaml").read_text()
    (workspace / "slow.yaml").write_text(suite.replace("bot.py:reply", "slow.py:reply"))
    (workspace / "slow.py").write_text(
        "import pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "(here / 'loading').touch()\n"
        "while not (here / 'go').exists():\n    time.sleep(0.01)\n"
        "def reply(messages):\n    return 'welcome'\n"
    )
    jobs = Jobs(store, ServerPolicy(workspace))
    first = jobs.submit(ONE)
    with ThreadPoolExecutor(1) as pool:
        checked = pool.submit(jobs.submit, SuiteJob(suite="slow.yaml"))
        while not (workspace / "loading").exists():
            time.sleep(0.01)
        assert [job.id for job in jobs.list()] == [first.id]
        second = jobs.submit(ONE)
        assert jobs.submit(ONE, "key").id == jobs.submit(ONE, "key").id != second.id
        (workspace / "go").touch()
        third = checked.result(30)
    assert {first.id, second.id, third.id} < {job.id for job in jobs.list()}
    jobs.close()


def test_a_job_that_is_given_back_waits_in_the_store_whatever_else_is_saved_at_that_moment(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = (workspace / "suites" / "refunds.yaml").read_text()
    (workspace / "slow.yaml").write_text(suite.replace("bot.py:reply", "slow.py:reply") + "max_concurrent: 1\n")
    (workspace / "slow.py").write_text(
        "import pathlib, time\n"
        "here = pathlib.Path(__file__).parent\n"
        "def reply(messages):\n"
        "    (here / 'asked').touch()\n"
        "    while not (here / 'go').exists():\n        time.sleep(0.01)\n"
        "    return 'welcome'\n"
    )
    jobs = Jobs(store, ServerPolicy(workspace))
    savers: list[threading.Thread] = []
    stop, end = Job.stop, Job.end

    def stop_and_answer(job: Job) -> None:
        stop(job)
        (workspace / "go").touch()

    def end_while_others_save(job: Job, *, saves: bool = True, **values: object) -> None:
        end(job, saves=saves, **values)
        other = jobs._work._turn  # pyright: ignore[reportPrivateUsage]
        savers.append(threading.Thread(target=other))
        savers[-1].start()
        savers[-1].join(0.5)  # it has saved by then, or waits until it may

    monkeypatch.setattr(Job, "stop", stop_and_answer)
    monkeypatch.setattr(Job, "end", end_while_others_save)
    begun = jobs.submit(SuiteJob(suite="slow.yaml"))
    while not (workspace / "asked").exists():
        time.sleep(0.01)
    jobs.close()
    for saver in savers:
        saver.join()
    with store.database.connected() as connection:
        statuses = connection.execute(select(tables.jobs.c.id, tables.jobs.c.status)).all()
    assert len(savers) == 1
    assert [tuple(one) for one in statuses] == [(begun.id, "waiting")]


@pytest.mark.parametrize(("step", "turn"), [("claim", 0), ("save", 0), ("save", 1)])
def test_no_cancel_of_a_job_is_lost_between_two_steps_of_its_server(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch, step: str, turn: int
) -> None:
    jobs = Jobs(store, ServerPolicy(workspace))
    original, calls = getattr(JobQueue, step), itertools.count()
    submitted = threading.Event()
    cancels: list[threading.Thread] = []

    def cancel_after(queue: JobQueue, *arguments: Any, **more: Any) -> Any:
        submitted.wait(30)
        returned = original(queue, *arguments, **more)
        if next(calls) == turn:
            cancels.append(threading.Thread(target=jobs.cancel, args=(jobs.list()[0].id,)))
            cancels[-1].start()
            cancels[-1].join(0.5)  # it has cancelled by then, or waits until it may
        return returned

    monkeypatch.setattr(JobQueue, step, cancel_after)
    job_id = jobs.submit(SuiteJob(suite="suites/refunds.yaml")).id
    submitted.set()
    asyncio.run(told_by(jobs, job_id))
    record = jobs.get(job_id).record
    for cancel in cancels:
        cancel.join()
    jobs.close()
    assert len(cancels) == 1
    assert (record.status, record.detail, record.done) == ("interrupted", "cancelled", 0)


def test_no_cancel_of_a_job_is_lost_at_a_random_moment(store: Store, workspace: Path) -> None:
    suite = (workspace / "suites" / "refunds.yaml").read_text()
    (workspace / "slow.yaml").write_text(suite.replace("bot.py:reply", "slow.py:reply"))
    (workspace / "slow.py").write_text("import time\n\ndef reply(messages):\n    time.sleep(5)\n    return 'hi'\n")
    jobs, moments = Jobs(store, ServerPolicy(workspace)), random.Random(5)
    for _ in range(12):
        job_id = jobs.submit(SuiteJob(suite="slow.yaml")).id
        time.sleep(moments.uniform(0, 0.06))
        jobs.cancel(job_id)
        jobs.cancel(job_id)
        asyncio.run(told_by(jobs, job_id))
        record = jobs.get(job_id).record
        assert (record.status, record.detail, record.done) == ("interrupted", "cancelled", 0)
    jobs.close()


def test_a_link_out_of_the_folder_is_not_a_suite(workspace: Path, tmp_path: Path) -> None:
    policy = ServerPolicy(workspace / "suites")
    assert policy.suite("refunds.yaml") == (workspace / "suites" / "refunds.yaml").resolve()
    (tmp_path / "other.yaml").write_text("name: x")
    os.symlink(tmp_path / "other.yaml", workspace / "suites" / "link.yaml")
    for name in ("link.yaml", "../other.yaml", str(tmp_path / "other.yaml"), "bot.py"):
        with pytest.raises(UsageError, match="in the served folder"):
            policy.suite(name)


def long_event(number: int) -> JobNews:
    return JobNews("turn", {"sample_id": str(number), "messages": [{"role": "user", "text": "x" * 1_000_000}]})


async def test_only_the_newest_events_are_kept_where_all_are_too_long(store: Store) -> None:
    job = Job(JobRecord(id="j", kind="suite", created_at=0), lambda job: None)
    for number in range(20):
        job.take(long_event(number))
    job.end(status="finished")
    sent = [frame async for frames in job.follow() for frame in frames]
    assert KEPT_BYTES - 1_100_000 < sum(len(frame.data) for frame in sent) <= KEPT_BYTES
    assert [frame.id for frame in sent] == list(range(22 - len(sent), 22))


def test_the_store_keeps_only_the_newest_events_where_all_are_too_long(store: Store) -> None:
    store.jobs.add(JobRow(id="j", folder="f", kind="suite", created_at=0, request="{}"))
    for number in range(1, 21):
        store.jobs.save("j", 0, {"done": number}, f'["{"x" * 1_000_000}"]', number)
    assert len(store.jobs.events("j", 0)) == KEPT_BYTES // 1_000_004


ODD_VALUES = [{"kind": "evil"}, {"starts": "many"}, {"created_at": "x"}, {"request": b"\xff\0"}, {"fence": "f"}]


def test_a_job_that_cannot_be_read_fails_alone(store: Store, workspace: Path) -> None:
    folder = str(workspace.resolve())
    with store.database.writing() as connection:
        for number, odd in enumerate(ODD_VALUES):
            row = JobRow(id=f"job-{number}", folder=folder, kind="suite", created_at=1.0, request="{}")
            values = {column.name: getattr(row, column.name) for column in tables.jobs.c} | odd
            names = ", ".join(values)
            marks = ", ".join("?" * len(values))
            connection.exec_driver_sql(f"INSERT INTO jobs ({names}) VALUES ({marks})", tuple(values.values()))
    jobs = Jobs(store, ServerPolicy(workspace))
    assert {record.status for record in jobs.list()} == {"failed"}
    assert jobs.cancel("job-0").status == "failed"
    record = jobs.submit(ONE)
    asyncio.run(told_by(jobs, record.id))
    assert jobs.get(record.id).record.status == "finished"
    assert jobs.is_at_work
    deadline = time.monotonic() + 60
    while store.jobs.unfinished() and time.monotonic() < deadline:
        time.sleep(0.05)
    jobs.close()
    assert store.jobs.unfinished() == 0
    details = {record.id: record.detail or "" for record in jobs.list()}
    assert all("cannot be read" in details[f"job-{number}"] for number in range(len(ODD_VALUES)))
