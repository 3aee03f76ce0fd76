from __future__ import annotations

from pathlib import Path

from vivavoce.server.job_requests import SuiteJob
from vivavoce.server.jobs import Jobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

from .live import get, send, serving


def test_head_is_answered_as_get_is_without_the_body(server: str) -> None:
    for path in ("/", "/api/v1/runs", "/api/v1/runs/latest/export?format=csv", "/static/vv.css", "/api/v1/runs/none"):
        head, found = send("HEAD", server + path), get(server + path)
        assert (head.status, head.body) == (found.status, b"")
        assert head.headers["content-type"] == found.headers["content-type"]
        assert head.headers.get("content-length") == found.headers.get("content-length")


def test_the_head_of_news_that_do_not_end_comes_at_once(store: Store, workspace: Path) -> None:
    record = Jobs(store, ServerPolicy(workspace)).submit(SuiteJob(suite="suites/refunds.yaml"))
    with serving(store, ServerPolicy(workspace)) as url:
        head = send("HEAD", f"{url}/api/v1/jobs/{record.id}/events")
    assert (head.status, head.headers["content-type"].partition(";")[0]) == (200, "text/event-stream")


def test_what_takes_no_get_takes_no_head_either(server: str) -> None:
    assert send("HEAD", f"{server}/api/v1/evaluations").status == 405
