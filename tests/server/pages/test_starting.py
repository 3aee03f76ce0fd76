from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from anyio import to_thread
from fastapi import Request

from vivavoce.server.policy import ServerPolicy
from vivavoce.server.process_route import RequestProcesses
from vivavoce.server.users import user_of
from vivavoce.store.store import Store

from ..api.test_jobs import ended
from ..live import Reply, get, serving
from .cases import Elements
from .hostile import TEXTS
from .test_sign_in import fields
from .test_sign_in import submit as send_form

REFUNDS = "/jobs/new?suite=suites/refunds.yaml"


@pytest.fixture
def url(store: Store, workspace: Path) -> Iterator[str]:
    with serving(store, ServerPolicy(workspace)) as base:
        yield base


def start(url: str, shown: str, **more: str) -> Reply:
    """Send the form that a page shows, with more filled in."""
    return send_form(f"{url}/jobs/new", {**fields(get(url + shown)), **more})


def begun(url: str, reply: Reply) -> str:
    assert reply.status == 303, reply.text
    job = reply.headers["location"].rpartition("/")[2]
    assert ended(url, job).status == "finished"
    return job


def test_the_suites_below_the_served_folder_are_offered(url: str) -> None:
    options = [tag for tag in Elements(get(f"{url}/jobs/new").text).texts if tag.endswith(".yaml")]
    assert options == ["suites/refunds.yaml"]


def test_a_suite_is_shown_as_it_is_with_what_it_will_do_and_none_of_it_runs(url: str, workspace: Path) -> None:
    suite = workspace / "suites" / "refunds.yaml"
    suite.write_text(suite.read_text() + "# <script>alert(1)</script> & so on\n")
    (workspace / "suites" / "bot.py").write_text("raise SystemExit('this ran')\n")
    answer = get(url + REFUNDS)
    assert suite.read_text() in html.unescape(answer.text)
    assert "<script>alert" not in answer.text
    text = Elements(answer.text).text
    assert "3 samples × 1 target × 1 trial = 3 conversations" in text
    assert "4 messages to the target" in text
    assert "no judge is called" in text


def test_starting_it_leads_to_its_job_and_twice_the_same_form_to_the_same(url: str, store: Store) -> None:
    form = fields(get(url + REFUNDS)) | {"max_samples": "2", "trials": "3", "tags": "short, refunds"}
    first, again = (send_form(f"{url}/jobs/new", form) for _ in range(2))
    begun(url, first)
    assert again.headers["location"] == first.headers["location"]
    assert len(store.runs()) == 2
    assert store.run("latest").options["trials"] == 3
    assert store.run("latest").options["tags"] == ["short", "refunds"]


@pytest.mark.parametrize(
    ("more", "status", "told"),
    [
        ({"trials": "many"}, 422, "trials: Input should be a valid integer"),
        ({"trials": "1000000"}, 422, "trials must be at most 1000"),
        ({"max_cost": "nan"}, 422, "max_cost: Input should be a finite number"),
        ({"suite": "../x.yaml"}, 404, "no suite '../x.yaml'"),
        ({"suite": "suites/bot.py"}, 404, "no suite 'suites/bot.py'"),
        ({"what": "test", "goal": ""}, 422, "goal: Field required"),
        ({"what": "test", "goal": "Get a refund"}, 422, "VIVAVOCE_TESTER"),
        ({"what": "grade", "run": "nobody"}, 404, "no run 'nobody'"),
    ],
)
def test_what_is_wrong_is_told_beside_the_form_and_nothing_begins(
    url: str, more: dict[str, str], status: int, told: str
) -> None:
    reply = start(url, REFUNDS, **more)
    assert (reply.status, told in html.unescape(reply.text)) == (status, True), Elements(reply.text).text
    assert get(f"{url}/api/v1/jobs").json()["jobs"] == []


def test_a_form_for_something_else_is_none_of_ours(url: str) -> None:
    assert start(url, REFUNDS, what="resume").status == 422


def test_the_problems_of_a_suite_come_with_their_lines_and_without_a_button(url: str, workspace: Path) -> None:
    suite = workspace / "suites" / "refunds.yaml"
    suite.write_text(suite.read_text().replace("kind: tool", "kind: tol"))
    page = Elements(get(url + REFUNDS).text)
    assert "suites/refunds.yaml, line 9: graders.said.kind: no kind 'tol'; did you mean 'tool'?" in page.text
    assert str(workspace) not in page.text
    assert "form_key" not in page.having("name")


def test_a_stored_run_is_graded_again_with_a_suite(url: str, store: Store) -> None:
    run = store.run("latest").id
    shown = f"/jobs/new?grade={run}&suite=suites/refunds.yaml"
    assert run in Elements(get(url + shown).text).having("value")
    begun(url, start(url, shown, run=run))
    assert len(store.gradings(run)) == 2


@pytest.mark.parametrize("text", TEXTS[:30])
def test_hostile_texts_stay_texts(url: str, text: str) -> None:
    asked = quote(text, safe="", errors="replace")
    for address in (f"/jobs/new?suite={asked}", f"/jobs/new?grade={asked}", f"/jobs/new?what={asked}"):
        page = Elements(get(url + address).text)
        scripts = [found["src"] for tag, found in page.tags if tag == "script"]
        assert sorted(scripts) == ["/static/palette.js", "/static/print.js", "/static/vv.js"]
        assert not [name for _, found in page.tags for name in found if name.startswith("on") or name == "style"]


def test_forms_wait_for_a_place_of_their_user(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []

    async def run(processes: RequestProcesses, request: Request, work: Callable[[], Any]) -> Any:
        del processes
        waited.append(user_of(request).name)
        return await to_thread.run_sync(work)

    monkeypatch.setattr(RequestProcesses, "run", run)
    begun(url, start(url, "/jobs/new?suite=suites/refunds.yaml"))
    assert len(waited) == 2
