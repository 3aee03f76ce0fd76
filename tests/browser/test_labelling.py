"""Somebody marks conversations with the keys alone, and without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from server.live import serving
from server.pages.cases import keep, outcome, turn
from vivavoce.records.score import Score
from vivavoce.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    grades = {"goal": Score(value=1.0)}
    talks = [outcome(name, [turn(0, "Hi", "Hello")], grades) for name in ("one", "two", "three")]
    with Store.open(str(tmp_path / "kept.db")) as store:
        with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
            apart.submit(keep, store, talks, "run-1").result()
        yield store


@pytest.fixture
def queue(store: Store) -> Iterator[str]:
    """The address where a blind queue of three conversations begins."""
    with serving(store) as url:
        yield f"{url}/label?run=run-1&grader=goal&blind=1"


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)
    page.wait_for_load_state()  # keys are heard from then on


def test_conversations_are_marked_with_keys(queue: str, page: Page, store: Store) -> None:
    page.goto(queue)
    heading(page, "Item 1 of 3")
    page.keyboard.press("Enter")  # without an answer nothing is saved
    heading(page, "Item 1 of 3")
    page.keyboard.press("2")
    page.keyboard.press("w")
    page.keyboard.type("1 s u")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    heading(page, "Item 2 of 3")
    page.keyboard.press("s")
    heading(page, "Item 3 of 3")
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    heading(page, "Item 2 of 3")
    expect(page.get_by_label("Progress")).to_contain_text("Item 3: you say Pass")
    page.keyboard.press("u")
    heading(page, "Item 3 of 3")
    assert [(one.verdict, one.note) for one in store.labels.all("run-1")] == [("fail", "1 s u")]


def test_without_a_script_a_form_does_the_same(browser: Browser, queue: str, store: Store) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(queue)
    page.get_by_label("Cannot tell").check()
    page.get_by_role("button", name="Save, next").click()
    heading(page, "Item 2 of 3")
    page.get_by_role("button", name="Undo item 1").click()
    heading(page, "Item 1 of 3")
    context.close()
    assert list(store.labels.all("run-1")) == []


def test_a_turn_is_marked_on_the_page_of_its_conversation(queue: str, page: Page) -> None:
    page.goto(f"{queue.partition('/label')[0]}/runs/run-1/samples/one")
    page.get_by_role("link", name="Label this turn").click()
    expect(page.get_by_label("Where")).to_have_value("1")
    page.get_by_label("Fail").check()
    page.get_by_label("Why").fill("curt")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Scores for turn 1")).to_contain_text("curt")
    assert re.search(r"#t1$", page.url)


def test_a_telephone_shows_all_of_it_without_scrolling_sideways(queue: str, page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    for address in (queue, queue.partition("?")[0]):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
