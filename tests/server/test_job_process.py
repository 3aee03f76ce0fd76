"""The process of a job, seen from inside: what it tells its server, and when it stops by itself."""

from __future__ import annotations

import socket
from pathlib import Path

from server.pages.cases import outcome, turn
from vivavoce.pacing.budget import Budget
from vivavoce.records.run import AttemptEnded
from vivavoce.records.score import Failure, Score
from vivavoce.run.experiment import Experiment
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.server import job_process
from vivavoce.server.job import JobNews, Pulse
from vivavoce.server.job_process import MAX_SLOW_CONVERSATIONS, JobTask
from vivavoce.server.job_record import JobRecord
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import Channel
from vivavoce.store.jobs.queue import JobRow
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
