"""The whole way: somebody starts a run, watches it, finds the turn that failed, labels it, and compares two runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from server.live import serving
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store

from .conftest import SUITE


@pytest.fixture
def office(tmp_path: Path) -> Iterator[str]:
    """A server around an empty store, with two suites of the example: one for each release of its bot."""
    for name in ("shop.py", "bot_v1.py", "bot_v2.py", "graders.py", "dataset.jsonl"):
        shutil.copy(SUITE / name, tmp_path)
    suite = (SUITE / "suite.yaml").read_text()
    for release in ("v1", "v2"):
        (tmp_path / f"{release}.yaml").write_text(suite.replace("bot_v1.py", f"bot_{release}.py"))
    with Store.open(str(tmp_path / "kept.db")) as store, serving(store, ServerPolicy(tmp_path)) as url:
        yield url


def start(page: Page, office: str, suite: str) -> None:
    page.goto(f"{office}/jobs/new")
    page.get_by_label("Suite").select_option(suite)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("group", name=suite)).to_contain_text("asks_first")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/jobs/job-*")
    expect(page.get_by_role("status")).to_contain_text("This job is over")


def everybody_can_read(page: Page) -> None:
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, f"{page.url}: {found.generate_report()}"


def test_from_an_empty_store_to_a_label_a_comment_clusters_search_and_a_comparison(office: str, page: Page) -> None:
    page.goto(office)
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    for suite in ("v1.yaml", "v2.yaml"):
        start(page, office, suite)
        everybody_can_read(page)
    page.get_by_role("link", name="Runs", exact=True).click()
    page.locator(".runs .row").first.click()
    expect(page.get_by_role("heading", name="Gate failed")).to_be_visible()
    page.get_by_label("Filter samples").fill("asks_first<1")
    expect(page.locator(".samples .row")).to_have_count(1)
    page.locator(".samples .row").click()
    expect(page.get_by_label("Scores for turn 2")).to_contain_text("which is not a yes")
    page.get_by_role("link", name="Label this turn").nth(1).click()
    page.get_by_label("Fail", exact=True).check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Scores for turn 2")).to_contain_text("Fail")
    everybody_can_read(page)
    somebody_comments_and_it_is_found(page)
    causes_lead_to_their_conversations(page, office)
    page.goto(f"{office}/runs/latest")
    page.get_by_role("link", name="Compare with the previous run").click()
    expect(page.get_by_role("heading", name="Pass to fail, 3")).to_be_visible()
    everybody_can_read(page)
    page.locator(".pairs .row").first.click()
    expect(page.get_by_text("First diverging turn")).to_be_visible()
    everybody_can_read(page)


def somebody_comments_and_it_is_found(page: Page) -> None:
    turn = page.locator("article.turn").nth(1)
    turn.locator(".commenting summary").click()
    turn.get_by_role("textbox", name="Comment on turn 2").fill("Olu, was this a yes?")
    turn.get_by_role("button", name="Save comment").click()
    expect(page.locator("article.turn").nth(1)).to_contain_text("Olu, was this a yes?")
    everybody_can_read(page)
    page.get_by_label("Search everything").fill("role:assistant refund")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?**")
    everybody_can_read(page)
    page.get_by_role("link", name="question-before-yes").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("question-before-yes")


def causes_lead_to_their_conversations(page: Page, office: str) -> None:
    page.goto(f"{office}/runs/latest/clusters")
    expect(page.get_by_role("heading", level=1)).to_have_text("What failed")
    everybody_can_read(page)
    page.locator(".examples a").first.click()
    page.wait_for_url("**/samples/**")
