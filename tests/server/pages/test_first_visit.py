from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from vivavoce.server.demo import demo_folder
from vivavoce.server.job import Job
from vivavoce.server.jobs import Jobs
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

from ..api.test_jobs import ended
from ..live import cookie_of, get, serving
from .cases import Elements
from .test_sign_in import fields, submit

ROOT = Path(__file__).parents[3]


@pytest.fixture
def url(empty: Store, tmp_path: Path) -> Iterator[str]:
    with serving(empty, ServerPolicy(tmp_path)) as base:
        yield base


def started(url: str) -> tuple[str, list[str]]:
    """Start the demo from the first page, and return its page and its jobs."""
    reply = submit(f"{url}/demo", fields(get(url)))
    assert reply.status == 303, reply.text
    page = reply.headers["location"]
    return page, page.split("/")[2:]


def over(url: str, jobs: list[str]) -> None:
    for job in jobs:
        assert ended(url, job).status == "finished"


def test_the_first_page_explains_in_three_steps(url: str) -> None:
    page = Elements(get(url).text)
    assert len([tag for tag, _ in page.tags if tag == "li"]) == 3
    assert "viva init my-suite" in page.text


def test_the_demo_ends_at_the_comparison_of_two_versions(url: str, empty: Store) -> None:
    page, jobs = started(url)
    over(url, jobs)
    reply = get(url + page)
    assert reply.status == 303
    named = parse_qs(urlsplit(reply.headers["location"]).query)
    verdicts = [empty.gradings(named[side][0])[0].verdict for side in ("a", "b")]
    assert verdicts == ["pass", "fail"]
    text = Elements(get(url + reply.headers["location"]).text).text
    assert "question-before-yes" in text


@pytest.mark.parametrize(("status", "again", "told"), [("running", "1", "is running"), ("failed", None, "not finish")])
def test_the_page_of_a_demo_looks_again_while_it_runs_and_says_when_it_failed(
    url: str, monkeypatch: pytest.MonkeyPatch, status: str, again: str | None, told: str
) -> None:
    page, jobs = started(url)
    over(url, jobs)
    get_job = Jobs.get

    def unfinished(self: Jobs, job_id: str) -> Job:
        job = get_job(self, job_id)
        return Job(job.record.model_copy(update={"status": status}), lambda _: None)

    monkeypatch.setattr(Jobs, "get", unfinished)
    reply = get(url + page)
    assert (reply.status, reply.headers.get("refresh")) == (200, again)
    assert told in Elements(reply.text).text


def test_the_same_form_sent_twice_starts_one_demo(url: str, empty: Store) -> None:
    form = fields(get(url))
    first, again = (submit(f"{url}/demo", form) for _ in range(2))
    assert first.headers["location"] == again.headers["location"]
    over(url, first.headers["location"].split("/")[2:])
    assert len(empty.runs()) == 2


def test_a_forged_form_starts_nothing(url: str, empty: Store) -> None:
    assert submit(f"{url}/demo", {"form_key": "0" * 80, "key": "a"}).status == 403
    assert submit(f"{url}/demo", fields(get(url)) | {"key": ""}).status == 422
    assert empty.runs() == []


def test_who_may_only_read_gets_the_command_and_no_button(empty: Store, tmp_path: Path) -> None:
    _, secret = empty.tokens.create("Ida", "read")
    with serving(empty, ServerPolicy(tmp_path), demanded=True) as url:
        cookie = cookie_of(empty, secret)
        page = get(url, {"cookie": cookie})
        assert "Start the demo" not in page.text
        assert "viva run my-suite/suite.yaml" in page.text
        assert submit(f"{url}/demo", {"form_key": "x", "key": "a"}, cookie).status == 403
    assert empty.runs() == []


def test_a_checkout_and_the_wheel_have_the_example() -> None:
    assert demo_folder() == ROOT / "examples" / "support_bot"
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"] == {"examples/support_bot": "vivavoce/examples/support_bot"}
