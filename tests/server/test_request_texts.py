"""Texts of requests: every route and every kind of job that takes some is protected from them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from fastapi.routing import APIRoute

from vivavoce.errors import UsageError
from vivavoce.server import job_process
from vivavoce.server.access import SAFE_METHODS
from vivavoce.server.app import routers
from vivavoce.server.job_process import check
from vivavoce.server.job_requests import AnyJob, TestJob
from vivavoce.server.pages.route import ProcessPageRoute
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.process_route import ProcessRoute
from vivavoce.server.processes import Answer
from vivavoce.store.store import Store
from vivavoce.work_time import limited_work

IN_PROCESS = {
    "/api/v1/evaluations",
    "/api/v1/test-results/{run}/{sample:path}/evaluations",
    "/api/v1/runs/{run}/samples/{sample:path}/{trial}/row",
    "/capture",
}
"""Routes that compute something from texts: a process of its own does it, in a limited time."""

CHECK_IN_PROCESS = {"/api/v1/jobs", "/jobs/new", "/jobs/{job}/resume", "/demo"}
"""Routes that start a job, which a process checks."""

ONLY_KEEP = {
    *("/api/v1/runs/{run}", "/runs/{run}/remarks", "/runs/{run}/delete"),
    *("/api/v1/runs/{run}/samples/{sample:path}/{trial}/comments", "/api/v1/runs/{run}/comments/{comment}"),
    *("/comments", "/comments/{run}/{number}", "/views", "/api/v1/views", "/api/v1/views/{view}"),
    *("/api/v1/runs/{run}/samples/{sample:path}/{trial}/labels", "/label", "/label/{queue}/{place}"),
    *("/api/v1/runs/{run}/samples/{sample:path}/{trial}/decision", "/label/decide"),
    *("/label/assign", "/api/v1/label-queues", "/api/v1/label-queues/{queue}", "/label-queues/{queue}"),
    *("/api/v1/runs/{run}/calibrations", "/runs/{run}/calibration"),
    *("/api/v1/runs/{run}/clusters/names", "/runs/{run}/clusters"),
    *("/api/v1/webhooks", "/api/v1/webhooks/{webhook}", "/api/v1/jobs/{job}", "/jobs/{job}/cancel"),
    *("/sign-in", "/sign-out"),
}
"""Routes that keep what they get, or act on what it names, and search no text for anything."""

NAMES_AND_NUMBERS = {"kind", "suite", "options", "run", "resume", "release", "max_calls", "max_cost"}
"""Fields of a job that name what is there, or are numbers."""


def test_every_route_that_takes_text_is_known() -> None:
    routes = [route for router in routers() for route in router.routes if isinstance(route, APIRoute)]
    writing = [route for route in routes if not (route.methods or set()) <= SAFE_METHODS]
    assert {route.path for route in writing} == IN_PROCESS | CHECK_IN_PROCESS | ONLY_KEEP
    in_process = {route.path for route in writing if isinstance(route, ProcessRoute | ProcessPageRoute)}
    assert in_process == IN_PROCESS


def test_every_job_that_takes_text_says_so() -> None:
    with_text = {kind for kind in get_args(AnyJob) if kind.model_fields.keys() - NAMES_AND_NUMBERS}
    assert {kind.__name__ for kind in with_text} == {"EvaluationJob", "TestJob"}
    assert {kind for kind in get_args(AnyJob) if kind.brings_text} == with_text


class Answers:
    """What a process sends."""

    def __init__(self) -> None:
        self.last: Answer | None = None

    def send(self, thing: object) -> None:
        """Keep an answer."""
        assert isinstance(thing, Answer)
        self.last = thing


def check_request(store: Store, workspace: Path, request: AnyJob) -> Answer:
    answers = Answers()
    check(answers, str(store.place.address), ServerPolicy(workspace), request, workspace / "rows.jsonl", None)
    assert answers.last is not None
    return answers.last


@pytest.fixture
def test_job(monkeypatch: pytest.MonkeyPatch) -> TestJob:
    """A test of the target of a suite."""
    monkeypatch.setenv("VIVAVOCE_TESTER", "http://127.0.0.1:1/v1#tester")
    monkeypatch.setenv("VIVAVOCE_JUDGE", "http://127.0.0.1:1/v1#judge")
    return TestJob(suite="suites/refunds.yaml", goal="a refund", max_turns=2, max_calls=0)


def test_a_test_does_not_tell_which_files_there_are(store: Store, workspace: Path, test_job: TestJob) -> None:
    (workspace / "suites" / "secret").write_text("x")
    answers = [
        check_request(store, workspace, test_job.model_copy(update={"policy": name}))
        for name in ("secret", "nothing", str(workspace / "suites" / "secret"))
    ]
    assert [answer.error for answer in answers] == [None, None, None]


def test_the_check_of_a_test_is_interrupted(
    store: Store, workspace: Path, test_job: TestJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_process, "limited_work", partial(limited_work, 0.5))
    many = {
        "restrictions": [f"never tell the thing {number}" for number in range(1000)],
        "facts": {f"fact number {number}": f"value of {number}" for number in range(1000)},
    }
    answer = check_request(store, workspace, test_job.model_copy(update=many))
    assert "this request takes more than" in str(answer.error)


def test_a_goal_of_any_length_is_accepted(store: Store, workspace: Path, test_job: TestJob) -> None:
    goal = "wird " * 100_000
    harmless, refusing = (
        check_request(store, workspace, test_job.model_copy(update={"goal": text, "adversarial": True}))
        for text in (goal, f"{goal} abgelehnt")
    )
    assert (harmless.error, type(refusing.error)) == (None, UsageError)
