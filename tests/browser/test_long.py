"""A conversation of several parts: the next turns come while one scrolls, and without scripts their link is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser, Page, expect

from server.live import serving
from server.pages.cases import keep, outcome, turn
from vivavoce.records.score import Evidence, Score
from vivavoce.store.store import Store

TURNS = 250


@pytest.fixture(scope="module")
def long_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a conversation in which the first turn of each part is evidence."""
    with Store.open(str(tmp_path_factory.mktemp("long") / "kept.db")) as store:
        quoted = tuple(Evidence(text=f"answer {at}.", turn=at, verified=True) for at in (0, 100, 200))
        turns = [turn(at, f"question {at}", f"answer {at}.\n\n- one\n- two") for at in range(TURNS)]
        with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
            apart.submit(
                keep, store, [outcome("long", turns, {"goal": Score(value=0.0, other_evidence=quoted)})]
            ).result()
        with serving(store) as base:
            yield f"{base}/runs/latest/samples/long"


def test_the_next_turns_come_while_one_scrolls(long_url: str, page: Page) -> None:
    page.goto(long_url)
    assert page.locator("article.turn").count() == 100
    page.wait_for_function(
        "turns => { scrollTo(0, document.body.scrollHeight);"
        " return document.querySelectorAll('article.turn').length >= turns; }",
        arg=TURNS,
        polling=200,
    )
    expect(page.locator("article.turn")).to_have_count(TURNS)
    expect(page.locator("[data-window]")).to_have_count(0)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    assert {"ev-a", "p101-ev-a", "p201-ev-a", "t250"} <= set(ids)
    numbers = page.locator("article.turn > .who .no").all_text_contents()
    assert numbers == [str(number + 1) for number in range(TURNS)]
    assert page.locator("#human-label-turn option").count() == TURNS + 1, "each turn can be labelled, or the whole"


def test_without_scripts_a_link_leads_to_them(long_url: str, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(long_url)
        page.get_by_role("link", name="the next 100 turns").click()
        assert page.locator("article.turn").first.get_attribute("id") == "t101"
    finally:
        context.close()


def test_where_they_cannot_come_the_link_remains(long_url: str, page: Page) -> None:
    page.goto(long_url)
    page.route("**/*from=*", lambda route: route.fulfill(status=200, body="<p>Sign in</p>"))
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_role("link", name="the next 100 turns")).to_be_visible()
    assert page.locator("article.turn").count() == 100
