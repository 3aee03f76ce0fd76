"""Somebody starts a run from a page and watches it, turn by turn, until it is over; another watches one of a shell."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from server.live import serving
from vivavoce.server.pages.live import PLACES
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import Misbehaviour

SUITE = """\
name: greetings
dataset:
  rows: [{rows}]
target: {{kind: http, url: "{url}/", body: {{said: "{{{{ message }}}}"}}, reply: said}}
graders:
  polite: {{kind: tool, function: contains, extractor: last_assistant}}
max_concurrent: {at_once}
gate: {{kind: simple, metric_key: polite, op: gte, value: 0.5}}
"""


class Bot:
    """Answers as often as it is let, and says what it was asked besides a hello.

    Conversations that are held `together` get their first answers before any of them gets its second.
    """

    def __init__(self) -> None:
        self.together = 1
        self._left = self._begun = 0
        self._counting = threading.Lock()

    def let(self, answers: int) -> None:
        with self._counting:
            self._left += answers

    def __call__(self, body: dict[str, Any]) -> Misbehaviour:
        async def answer(request: web.Request) -> web.StreamResponse:
            del request
            while not self._may(first=body["said"].startswith("a")):  # noqa: ASYNC110
                await asyncio.sleep(0.005)  # the test that lets it is in another thread
            return web.json_response({"said": f"<b>hello</b> to {body['said']}"})

        return answer

    def _may(self, *, first: bool) -> bool:
        """Take one of the answers that are left, if it may be this one."""
        with self._counting:
            if not self._left or not (first or self._begun >= self.together):
                return False
            self._left -= 1
            self._begun += first
            return True


class Stage:
    """A served folder with a suite whose target answers when it is let."""

    def __init__(self, folder: Path, bot: Bot, target: LoopbackServer, store: Store, url: str) -> None:
        self.folder, self.bot, self.target, self.store, self.url = folder, bot, target, store, url

    def suite(self, rows: int, at_once: int = 2) -> Path:
        """Write a suite of so many conversations of two turns."""
        self.bot.together = min(rows, at_once)
        listed = ", ".join(f'{{id: s{i}, input: [a{i}, b{i}], ground_truth: "hello"}}' for i in range(rows))
        path = self.folder / "greetings.yaml"
        path.write_text(SUITE.format(rows=listed, url=self.target.url, at_once=at_once))
        return path


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    bot = Bot()
    path = str(tmp_path / ".vivavoce" / "vivavoce.db")
    with LoopbackServer(bot) as target, Store.open(path) as store, serving(store, ServerPolicy(tmp_path)) as url:
        yield Stage(tmp_path, bot, target, store, url)
        bot.let(1000)


def start(page: Page, stage: Stage) -> None:
    """Start the suite from its page, as far as the page of the job."""
    page.goto(f"{stage.url}/jobs")
    page.get_by_role("link", name="Start a job").first.click()
    page.get_by_label("Suite").select_option("greetings.yaml")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("group", name="greetings.yaml")).to_contain_text("max_concurrent")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/jobs/job-*")


def test_a_run_is_started_and_watched_turn_by_turn_to_its_end(stage: Stage, page: Page) -> None:
    stage.suite(rows=3)
    start(page, stage)
    talk = page.locator(".talk")
    expect(talk).to_have_count(2)
    expect(talk.first).to_contain_text("Running")
    expect(talk.first.locator(".say")).to_have_count(0)
    stage.bot.let(2)
    expect(talk.first.locator(".say").last).to_have_text("Assistant <b>hello</b> to a0")
    expect(talk.nth(1).locator(".say").last).to_have_text("Assistant <b>hello</b> to a1")
    expect(page.locator("#scores")).to_contain_text("no score yet")
    place = talk.nth(1).bounding_box()
    stage.bot.let(2)
    expect(talk.first.locator(".now")).to_have_text("Pass")
    expect(talk.first.locator(".scores")).to_contain_text("polite 1.00")
    expect(page.locator("[data-count=done]")).to_have_text("2")
    expect(page.locator("#scores")).to_contain_text("1.000")
    assert talk.nth(1).bounding_box() == place
    assert page.locator("#scores .plot.prov").count() == 1
    assert Axe().run(page).violations_count == 0  # pyright: ignore[reportUnknownMemberType]
    stage.bot.let(2)
    expect(page.get_by_role("status")).to_have_text("This job is over: finished, gate passed.")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    talk.first.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("s0"))


def test_what_was_said_before_one_looks_is_there_and_the_rest_follows(stage: Stage, page: Page) -> None:
    stage.suite(rows=2)
    start(page, stage)
    stage.bot.let(2)
    expect(page.locator(".say")).to_have_count(4)
    page.reload()
    expect(page.locator(".say")).to_have_count(4)
    stage.bot.let(2)
    expect(page.locator(".say")).to_have_count(8)
    expect(page.locator(".talk")).to_have_count(2)


def test_a_long_run_never_fills_the_page(stage: Stage, page: Page) -> None:
    stage.suite(rows=PLACES + 20, at_once=8)
    start(page, stage)
    stage.bot.let(1000)
    expect(page.get_by_role("status")).to_contain_text("finished")
    expect(page.locator("[data-count=done]")).to_have_text(str(PLACES + 20))
    assert page.locator(".talk").count() == PLACES
    assert page.locator(".talk.over").count() == PLACES


def test_a_run_is_cancelled_where_it_is_watched_and_goes_on(stage: Stage, page: Page) -> None:
    stage.suite(rows=6, at_once=1)
    start(page, stage)
    expect(page.locator(".talk").first).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    stage.bot.let(2)
    expect(page.get_by_role("status")).to_have_text("This job is over: interrupted.")
    page.get_by_role("button", name="Continue").click()
    stage.bot.let(100)
    expect(page.get_by_role("status")).to_contain_text("finished, gate passed")


def test_without_a_script_a_job_shows_how_it_stands(browser: Browser, stage: Stage) -> None:
    stage.suite(rows=2)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    start(page, stage)
    stage.bot.let(4)
    for _ in range(100):
        page.get_by_role("link", name="reload").click()
        if page.get_by_role("link", name="reload").count() == 0:
            break
    expect(page.locator(".talk .now").first).to_have_text("Pass")
    context.close()


def test_a_run_of_a_shell_is_seen_to_go_on(stage: Stage, page: Page) -> None:
    suite = stage.suite(rows=3, at_once=1)
    with ThreadPoolExecutor(1) as shell:
        running = shell.submit(run_suite, suite, store=stage.store.place)
        stage.bot.let(2)
        while not stage.store.runs() or not stage.store.counts(stage.store.run("latest").id)[0]:
            assert not running.done()
        page.goto(f"{stage.url}/runs/latest")
        expect(page.get_by_role("heading", name="Running")).to_be_visible()
        expect(page.locator(".samples .row")).to_have_count(1)
        stage.bot.let(2)
        expect(page.locator(".lede").first).to_contain_text("2 of 3 conversations", timeout=15_000)
        expect(page.locator(".samples .row")).to_have_count(1)
        page.get_by_role("button", name="Show new results").click()
        expect(page.locator(".samples .row")).to_have_count(2)
        stage.bot.let(2)
        expect(page.locator("[data-ending]")).to_have_text("This run is over: Gate passed.", timeout=15_000)
        running.result()
    expect(page.get_by_role("heading", name="Gate passed")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_pages_of_jobs(browser: Browser, stage: Stage, scheme: str, width: int) -> None:
    stage.suite(rows=2)
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    start(page, stage)
    here = page.url
    stage.bot.let(3)
    expect(page.locator(".talk.over")).to_have_count(1)
    addresses = ["/jobs", "/jobs/new", "/jobs/new?suite=greetings.yaml", "/jobs/new?what=test&suite=greetings.yaml"]
    for address in [here, *(stage.url + one for one in addresses)]:
        page.goto(address)
        found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
        assert found.violations_count == 0, f"{address}: {found.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    context.close()
