"""Checking the request of a job in a process of its own: code of suites, and texts of clients, are read there."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from vivavoce.pacing.loops import wait_for
from vivavoce.run.experiment_run import ExperimentRun
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_requests import AnyJob, Beginning, EvaluationJob
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.processes import answering
from vivavoce.store.store import Store
from vivavoce.work_time import interrupted_work, limited_work


def _check(store: str, policy: ServerPolicy, request: AnyJob, file: Path, before: JobRecord | None) -> str | None:
    """Make the experiment of a request and close it; return the id of the run that it begins, None for an old run.

    Raises:
        UsageError: the request is wrong or not allowed.
        GraderFault: reading the texts of the request takes too long.
    """
    with ExitStack() as stack:
        opened = stack.enter_context(Store.open(store))
        if isinstance(request, EvaluationJob):  # the code of a suite may take its time
            stack.enter_context(interrupted_work())
        stack.enter_context(limited_work())
        run = Beginning(opened, policy, [], file, before).run(request)
        wait_for(run.check())
        return run.run_id if isinstance(run, ExperimentRun) and run.resumed is None else None


check = answering(_check)
