"""A link from elsewhere leads to its turn, before and after signing in."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page

from server.live import serving
from server.pages.cases import keep, outcome, turn
from vivavoce.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    talk = outcome("one", [turn(at, "Hi", "Hello") for at in range(3)], {})
    with Store.open(str(tmp_path / "kept.db")) as store:
        with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
            apart.submit(keep, store, [talk], "run-1").result()
        yield store


@pytest.fixture
def door(store: Store) -> Iterator[str]:
    """A server that demands tokens."""
    with serving(store, demanded=True) as url:
        yield url


def test_a_link_to_a_turn_leads_there_after_signing_in(door: str, page: Page, store: Store) -> None:
    turn_3 = f"{door}/runs/run-1/samples/one?trial=1#t3"
    page.goto(turn_3)
    page.get_by_label("Token").fill(store.tokens.create("ida", "read")[1])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(turn_3)
    page.goto("about:blank")  # a page of no origin is another site for cookies
    page.set_content(f'<a href="{turn_3}">the third turn</a>')
    page.get_by_role("link").click()
    page.wait_for_url(turn_3)
    assert page.locator("#t3").count() == 1
