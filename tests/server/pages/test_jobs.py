from __future__ import annotations

import html
import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.servers import soon
from vivavoce.server.job_record import JobRecord
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

from ..api.test_jobs import GRADE, MANY, Gate, breaking_suite, ended, slow_suite, stream, submit
from ..live import get, send, serving
from .cases import Elements
from .hostile import TEXTS
from .test_sign_in import FORM, fields


@pytest.fixture
def url(store: Store, workspace: Path) -> Iterator[str]:
    with serving(store, ServerPolicy(workspace)) as base:
        yield base


def press(url: str, path: str, shown: str) -> str:
    """Send the form of a page that goes to a path, and return where that leads."""
    body = f"form_key={fields(get(url + shown))['form_key']}".encode()
    reply = send("POST", url + path, body, FORM)
    assert reply.status == 303, reply.text
    return reply.headers["location"]


def test_without_jobs_the_list_says_what_they_are(url: str) -> None:
    page = Elements(get(f"{url}/jobs").text)
    assert "No jobs yet" in page.text
    assert "/jobs/new" in page.having("href")


def test_jobs_are_listed_with_how_they_stand_and_where_their_runs_are(url: str, workspace: Path) -> None:
    done = ended(url, submit(url, MANY).id)
    failed = ended(url, submit(url, breaking_suite(workspace)).id)
    page = Elements(get(f"{url}/jobs").text)
    rows = [found["href"] for _, found in page.tags if found.get("class") == "row"]
    assert rows == [f"/jobs/{failed.id}", f"/jobs/{done.id}"]
    assert "Failed" in page.text
    assert "5 of 5" in page.text
    assert f"/runs/{done.run}?grading={done.grading}" in page.having("href")
    assert not page.having("data-fresh")


def test_a_list_of_many_jobs_comes_in_pages(url: str) -> None:
    made = [submit(url, MANY).id for _ in range(31)]
    page = Elements(get(f"{url}/jobs").text)
    following = [found["href"] for _, found in page.tags if found.get("rel") == "next"]
    last = Elements(get(url + following[0]).text)
    assert [found["href"] for _, found in last.tags if found.get("class") == "row"] == [f"/jobs/{made[0]}"]
    assert "/jobs" in last.having("href")


def test_a_job_shows_what_is_said_at_this_moment_and_what_is_over(url: str, workspace: Path) -> None:
    gate = Gate()
    asked = iter(range(100))

    def bot(body: dict[str, Any]) -> Any:
        return {"said": "hi"} if next(asked) == 0 else gate(body)

    with LoopbackServer(bot) as target:
        record = submit(url, slow_suite(workspace, target, rows=3))
        gate.asked.wait(30)
        read = partial(get, f"{url}/jobs/{record.id}")
        soon(lambda: Elements(read().text).having("data-sample") == ["s0", "s1"])
        page = Elements(read().text)
        gate.open.set()
        over = ended(url, record.id)
    assert "said 1.00" in page.text
    assert any(href.startswith(f"/runs/{over.run}/samples/s0?trial=1&") for href in page.having("href"))
    assert [f"/api/v1/jobs/{record.id}/events"] == page.having("data-events")
    assert "Reload" in page.text
    later = Elements(get(f"{url}/jobs/{record.id}").text)
    assert "Finished" in later.text
    assert not later.having("data-events")


def test_a_job_that_is_cancelled_on_its_page_goes_on_from_there(url: str, workspace: Path) -> None:
    gate = Gate()
    with LoopbackServer(gate) as bot:
        record = submit(url, slow_suite(workspace, bot, rows=5))
        gate.asked.wait(30)
        here = f"/jobs/{record.id}"
        assert press(url, f"{here}/cancel", here) == here
        gate.open.set()
        assert ended(url, record.id).status == "interrupted"
        following = press(url, f"{here}/resume", "/jobs")
        assert ended(url, following.rpartition("/")[2]).status == "finished"
    assert f"{here}/resume" not in Elements(get(url + here).text).having("action")


def test_a_form_of_a_page_elsewhere_changes_nothing(url: str) -> None:
    record = ended(url, submit(url, MANY).id)
    for path in (f"/jobs/{record.id}/cancel", f"/jobs/{record.id}/resume", "/jobs/new"):
        assert send("POST", url + path, b"form_key=x", FORM).status == 403
    assert len(get(f"{url}/api/v1/jobs").json()["jobs"]) == 1


def test_a_job_that_began_nothing_cannot_go_on(url: str, workspace: Path) -> None:
    failed = ended(url, submit(url, breaking_suite(workspace)).id)
    key = fields(get(f"{url}/jobs/new?suite=suites/refunds.yaml"))["form_key"]
    reply = send("POST", f"{url}/jobs/{failed.id}/resume", f"form_key={key}".encode(), FORM)
    assert (reply.status, "there is nothing to resume" in html.unescape(reply.text)) == (422, True)


def test_who_may_only_read_sees_jobs_and_no_forms(store: Store, workspace: Path) -> None:
    token = store.tokens.create("reader", "read")[1]
    reader = {"authorization": f"Bearer {token}"}
    with serving(store, ServerPolicy(workspace), demanded=True) as url:
        page = Elements(get(f"{url}/jobs", reader).text)
        assert "No jobs yet" in page.text
        assert "/jobs/new" not in page.having("href")
        assert get(f"{url}/jobs/new", reader).status == 403
        assert send("POST", f"{url}/jobs/new", b"", {**FORM, **reader}).status == 403


def test_news_can_be_asked_for_from_a_place_without_a_header(url: str) -> None:
    record = submit(url, {"kind": "suite", "suite": "suites/refunds.yaml", "options": {"samples": ["kind"]}})
    told = list(stream(url, record.id))
    asked = get(f"{url}/api/v1/jobs/{record.id}/events?after=4").text
    assert [json.loads(line[5:])["id"] for line in asked.splitlines() if line.startswith("data:")] == [5, 6]
    assert len(told) == 6


def test_grading_again_shows_its_scores_beside_the_old_run(url: str, store: Store) -> None:
    record = ended(url, submit(url, GRADE).id)
    page = Elements(get(f"{url}/jobs/{record.id}").text)
    assert "Grading again" in page.text
    assert f"/runs/{store.run('latest').id}?grading={record.grading}" in page.having("href")


def test_a_job_whose_run_is_gone_still_has_a_page(url: str, store: Store) -> None:
    record = ended(url, submit(url, MANY).id)
    store.maintenance.collect(keep_last=0)
    assert "Its run has been deleted" in get(f"{url}/jobs/{record.id}").text


def test_whatever_a_target_says_stays_a_text(url: str, workspace: Path) -> None:
    said = iter([*TEXTS[:20], *["hi"] * 100])
    lock = threading.Lock()

    def bot(body: dict[str, Any]) -> Any:
        with lock:
            return {"said": next(said)}

    with LoopbackServer(bot) as target:
        record: JobRecord = submit(url, slow_suite(workspace, target, rows=20))
        ended(url, record.id)
    page = Elements(get(f"{url}/jobs/{record.id}").text)
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 4
    assert not [name for _, found in page.tags for name in found if name.startswith("on") or name == "style"]
