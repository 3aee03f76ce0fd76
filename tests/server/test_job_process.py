"""The process of a job, seen from inside: what it tells its server, and when it stops by itself."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from faults.servers import soon
from server.pages.cases import outcome, turn
from vivavoce.errors import Blame
from vivavoce.pacing.limits import Budget
from vivavoce.records.run import AttemptEnded
from vivavoce.records.score import OUT_OF_MEMORY, Failure, Score, failure_of
from vivavoce.run.experiment import Experiment
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.server import job_process, processes
from vivavoce.server.job import JobNews, Pulse
from vivavoce.server.job_process import MAX_SLOW_CONVERSATIONS, JobTask
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import SuiteJob
from vivavoce.server.jobs import Jobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import Channel
from vivavoce.store.jobs import JobRow
from vivavoce.store.replies import ReplyStore
from vivavoce.store.store import Store

TOO_LONG = Failure(blame="grader", kind="limit", message="this conversation takes more than 20 s of patterns")
OTHER = Failure(blame="grader", kind="limit", message="the JSON schema follows more than 50 references")


def refuse(budget: Budget, replies: ReplyStore | None) -> Experiment:
    raise AssertionError("nothing is run")


class StoppedRun(ExperimentRun):
    """A run that remembers that it was stopped."""

    def stop(self) -> int:
        """Take note of it."""
        self.title = f"{self.title or ''}stopped"
        return 0


async def test_a_job_whose_conversations_take_too_long_stops_after_some(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    row = JobRow(id="j", folder=".", kind="evaluation", created_at=0)
    record = JobRecord(id="j", kind="evaluation", created_at=0)
    task = JobTask("none.db", ServerPolicy(tmp_path), row, record, tmp_path)
    worker = job_process._Worker(Channel(theirs.detach()), task)  # pyright: ignore[reportPrivateUsage]
    with Store.open(tmp_path / "none.db") as store:
        run = StoppedRun(refuse, store)
    worker._execution = run  # pyright: ignore[reportPrivateUsage]
    server = Channel(ours.detach())
    for number in range(MAX_SLOW_CONVERSATIONS):
        assert run.title is None
        for failure in (OTHER, TOO_LONG):
            score = Score(name="g", state="error", failure=failure)
            ended = outcome(f"s{number}", [turn(0, "hi")]).model_copy(update={"scores": {"g": score}})
            await worker.on(AttemptEnded(ended))
            assert isinstance(server.receive(), Pulse)
            news = server.receive()
            assert isinstance(news, JobNews)
            assert (news.kind, news.is_done, news.is_broken) == ("graded", True, True)
    assert run.title == "stopped"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_job_that_needs_too_much_memory_blames_what_was_asked_for(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MAX_BYTES", 2**30)
    monkeypatch.setattr(processes, "SUITE_MEMORY_SHARE", 0)
    (workspace / "greedy.py").write_text(
        "def reply(messages):\n    return 'hi'\n\ndef measure(sample, submission):\n    bytearray(2**31)\n"
    )
    (workspace / "greedy.yaml").write_text(
        "name: greedy\ndataset: {rows: [{id: a, input: hello}]}\n"
        "target: {kind: function, function: 'greedy.py:reply'}\n"
        "graders: {g: {kind: tool, function: 'greedy.py:measure', extractor: last_assistant}}\n"
    )
    jobs = Jobs(store, ServerPolicy(workspace))
    job_id = jobs.submit(SuiteJob(suite="greedy.yaml")).id
    soon(lambda: jobs.get(job_id).record.over)
    job = jobs.get(job_id)
    record = job.record
    scores = [score for event in job.since(0) for score in event.scores or ()]
    jobs.close()
    assert (record.status, record.done, record.errors) == ("finished", 1, 1)
    (failure,) = [score.failure for score in scores]
    assert failure is not None
    assert (failure.blame, failure.kind) == ("suite", "limit")


def test_memory_that_runs_out_is_not_the_fault_of_whoever_was_asked() -> None:
    blames: tuple[Blame, ...] = ("judge", "grader", "target")
    for blame in blames:
        failure = failure_of(MemoryError(), blame)
        assert (failure.blame, failure.kind, failure.message, failure.evidence) == (
            "suite",
            "limit",
            OUT_OF_MEMORY,
            None,
        )
