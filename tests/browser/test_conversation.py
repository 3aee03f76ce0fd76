"""A long conversation in a real browser: what failed, the links of its turns, its outline and its printed pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from server.live import serving
from server.pages.cases import called, keep, outcome, per_turn, turn
from vivavoce.records.score import Score
from vivavoce.store.store import Store


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a conversation of 1,000 turns and one of 5, both failed."""
    with Store.open(str(tmp_path_factory.mktemp("long") / "kept.db")) as store:
        turns = [turn(i, f"question {i}", *called("look", f'{{"n": {i}}}', "x"), f"answer {i}") for i in range(1000)]
        unpaid = Score(value=0.0, reason="Nothing was paid.")
        long = outcome("long", turns, {"goal": unpaid, "tone": per_turn(*[1.0] * 499, 0.0, *[1.0] * 500)})
        short = outcome("short", turns[:5], {"goal": unpaid, "tone": per_turn(1.0, 0.0, 1.0, 1.0, 1.0)}, position=1)
        with ThreadPoolExecutor(1) as apart:
            apart.submit(keep, store, [long, short]).result()
        with serving(store) as url:
            yield url


@pytest.mark.parametrize("width", [380, 1280])
def test_the_page_of_a_long_conversation_fits_and_axe_finds_nothing(page: Page, base: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{base}/runs/run-1/samples/long?find=question 777")
    page.get_by_text("Outline of 1,000 turns").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, found.generate_report()


def test_words_are_found_and_lead_to_their_turn(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-1/samples/long")
    page.get_by_label("Find in this conversation").fill("question 777")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 1,000 turns contain these words")).to_be_visible()
    page.get_by_label("Matching turns").get_by_role("link", name="Turn 778").click()
    expect(page.locator("#t778")).to_be_in_viewport()


def test_the_link_of_a_turn_is_copied_with_the_keyboard_and_said(page: Page, base: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{base}/runs/run-1/samples/long")
    page.get_by_role("link", name="Link to turn 3", exact=True).focus()
    page.keyboard.press("Tab")
    button = page.get_by_role("button", name="Copy link to turn 3", exact=True)
    expect(button).to_be_focused()
    expect(button).to_have_css("opacity", "1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{base}/runs/run-1/samples/long#t3"
    expect(button).to_be_focused()


def test_where_a_page_has_no_clipboard_the_button_says_so(page: Page, base: str) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(f"{base}/runs/run-1/samples/long")
    page.locator("#t2").hover()
    page.get_by_role("button", name="Copy link to turn 2", exact=True).click()
    expect(page.get_by_role("status").get_by_text("The browser refused")).to_be_visible()


def test_the_first_failing_turn_is_one_link_away_and_numbers_do_not_touch_the_speaker(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-1/samples/long")
    page.get_by_role("link", name="First failing turn").click()
    expect(page.locator("#t500")).to_be_in_viewport()
    assert page.url.endswith("#t500")
    number = page.get_by_role("link", name="Link to turn 500")
    wide = number.evaluate(
        "one => { const r = document.createRange(); r.selectNodeContents(one); "
        "return [r.getBoundingClientRect().width, one.getBoundingClientRect().width]; }"
    )
    assert wide[0] < wide[1]


def test_five_turns_are_printed_on_at_most_five_pages(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-1/samples/short")
    printed = page.pdf(format="A4")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 5
