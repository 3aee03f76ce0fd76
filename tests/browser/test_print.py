"""A page on paper: a conversation is handed in on few sheets, without anything to press."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page

from server.live import serving
from server.pages.cases import called, keep, outcome, turn
from vivavoce.records.score import Score
from vivavoce.store.store import Store

SAID = "We looked into your order and found that the parcel was returned to us by the carrier last week. " * 3
MADE = json.dumps({f"field {number}": "a value of the record" for number in range(120)}, indent=1)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[str]:
    """The address of a conversation of five turns with a long call of a tool."""
    turns = [
        turn(0, SAID, *called("find_order", '{"order": 1}', MADE), SAID),
        *(turn(index, SAID, SAID) for index in range(1, 5)),
    ]
    with Store.open(str(tmp_path / "kept.db")) as store:
        found = {"answers": Score(value=0.5, reason=SAID), "tone": Score(value=1.0, reason=SAID)}
        with ThreadPoolExecutor(1) as aside:  # the browser holds the event loop of this thread
            aside.submit(keep, store, [outcome("five-turns", turns, found)]).result()
        with serving(store) as url:
            yield f"{url}/runs/run-1/samples/five-turns"


def sheets(page: Page) -> int:
    """Print a page to A4, and return its number of sheets."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", print_background=True)))


def test_a_conversation_of_five_turns_takes_at_most_five_sheets(talk: str, page: Page) -> None:
    page.goto(talk)
    assert 1 <= sheets(page) <= 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_is_white_and_has_nothing_to_press(talk: str, page: Page, scheme: str) -> None:
    page.emulate_media(media="print", color_scheme="dark" if scheme == "dark" else "light")
    page.goto(talk)
    page.evaluate("(scheme) => { document.documentElement.dataset.theme = scheme; }", scheme)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for shown in ("button", "form", "nav", ".exchange"):
        assert page.locator(shown).locator("visible=true").count() == 0, shown
    assert page.locator("article.turn").locator("visible=true").count() == 5
    assert page.locator("details.tool").first.evaluate("(fold) => fold.offsetHeight") < 60
    assert page.get_by_text("the parcel was returned").locator("visible=true").count() >= 10


def test_the_first_sheet_begins_with_the_conversation(talk: str, page: Page) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 1000})
    page.goto(talk)
    assert page.locator("article.turn").first.bounding_box()["y"] < 600  # pyright: ignore[reportOptionalSubscript]
    assert "break-inside: avoid" not in page.evaluate(
        "`break-inside: ${getComputedStyle(document.querySelector('article.turn')).breakInside}`"
    )


def test_each_sheet_names_the_run_and_the_day(talk: str, page: Page) -> None:
    page.goto(talk)
    rule = page.evaluate("document.adoptedStyleSheets[0].cssRules[0].cssText")
    assert "run-1" in rule
    assert "printed " in rule


def test_the_list_of_runs_fits_the_sheet(page: Page, url: str) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 690, "height": 1000})
    page.goto(url)
    assert page.evaluate("document.documentElement.scrollWidth") <= 690


def test_a_run_is_printed_without_its_controls_and_with_its_suite_only_where_it_was_opened(
    page: Page, url: str
) -> None:
    page.emulate_media(media="print")
    page.goto(f"{url}/runs/latest")
    for shown in ("button", "form", "nav", ".chosen", ".meta.by", ".remarks", ".views"):
        assert page.locator(shown).locator("visible=true").count() == 0, shown
    suite = page.locator("details.suite:not(.remarks)")
    assert suite.evaluate("(fold) => fold.offsetHeight") < 60
    suite.evaluate("(fold) => { fold.open = true; }")
    assert suite.evaluate("(fold) => fold.offsetHeight") > 100
