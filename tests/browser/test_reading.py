"""Somebody reads: from the list of runs to the turn that went wrong, with the mouse, with keys, without a script."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect


def test_from_the_list_to_the_turn_that_went_wrong(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.locator(".row").first.click()
    expect(page.get_by_role("heading", name="Gate failed")).to_be_visible()
    page.get_by_label("Filter samples").fill("asks_first<1")
    expect(page.locator(".samples .row")).to_have_count(1)
    assert "filter=asks_first%3C1" in page.url
    page.locator(".samples .row").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("question-before-yes")
    expect(page.get_by_label("Scores for turn 2")).to_contain_text("which is not a yes")
    page.get_by_label("What failed").get_by_role("link", name="Turn 2").first.click()
    assert page.url.endswith("#t2")
    expect(page.get_by_text("No other conversation is in this list")).to_be_visible()
    page.goto(page.url.partition("?")[0])
    page.get_by_role("link", name="Next failing").click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("question-before-yes")


@pytest.mark.refused_filters
def test_a_filter_that_cannot_be_read_is_told_while_typing(page: Page, url: str) -> None:
    page.goto(f"{url}/runs/latest")
    page.get_by_label("Filter samples").fill("stat:error")
    expect(page.get_by_role("alert")).to_contain_text("did you mean 'state'?")
    page.get_by_label("Filter samples").fill("state:error")
    expect(page.locator(".samples .row")).to_have_count(1)


def test_a_filter_that_the_server_does_not_answer_leaves_no_old_list_unexplained(browser: Browser, url: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{url}/runs/latest")
    context.set_offline(True)
    page.get_by_label("Filter samples").fill("worst<1")
    expect(page.get_by_role("alert")).to_contain_text("server")
    context.set_offline(False)
    page.get_by_label("Filter samples").fill("worst<0.5")
    expect(page.get_by_role("alert")).to_have_count(0)
    context.close()


def test_on_a_narrow_screen_the_list_is_sorted_by_a_field_and_says_which_of_how_many_it_opens(
    page: Page, url: str
) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{url}/runs/latest?filter=worst%3C1")
    first = page.locator(".samples .row").first
    before = first.inner_text()
    page.get_by_label("Sort by").select_option("position")
    page.get_by_role("button", name="Sort", exact=True).click()
    page.wait_for_url("**sort=position**")
    expect(first).not_to_have_text(before)
    page.locator(".samples .row").nth(1).click()
    expect(page.get_by_label("Conversations of this run")).to_contain_text("2 of 3")
    page.get_by_role("link", name="Next in this list").click()
    expect(page.get_by_label("Conversations of this run")).to_contain_text("3 of 3")


def test_everything_is_reached_with_keys(page: Page, url: str) -> None:
    page.goto(f"{url}/runs/latest")
    page.keyboard.press("f")
    expect(page.get_by_label("Filter samples")).to_be_focused()
    page.keyboard.type("worst<1")
    expect(page.locator(".samples .row")).to_have_count(3)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".samples .row").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("article.turn").first).to_be_visible()
    tool = page.locator("details.tool").first
    expect(tool).not_to_have_attribute("open", "")
    page.keyboard.press("t")
    expect(tool).to_have_attribute("open", "")
    before = page.url
    page.keyboard.press("n")
    page.wait_for_url(lambda found: found != before)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous turn")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_paper_is_light_or_dark_as_it_was_chosen(page: Page, url: str) -> None:
    page.goto(url)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark mode").click()
    dark = page.evaluate(paper)
    assert light != dark
    page.reload()
    assert page.evaluate(paper) == dark
    expect(page.get_by_role("button", name="Light mode")).to_be_visible()


def test_without_a_script_everything_reads_and_links_work(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    expect(page.get_by_role("button", name="Dark mode")).to_be_hidden()
    page.locator(".row").first.click()
    page.get_by_label("Filter samples").fill("state:error")
    page.get_by_label("Filter samples").press("Enter")
    expect(page.locator(".samples .row")).to_have_count(1)
    page.locator(".samples .row").click()
    expect(page.get_by_label("Scores for turn 2")).to_contain_text("TypeError")
    context.close()


def test_a_telephone_shows_all_of_it_without_scrolling_sideways(page: Page, url: str) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    for path in ("/", "/runs/latest", "/runs/latest/samples/question-before-yes"):
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380, path


def test_what_is_typed_before_the_page_has_loaded_filters_all_the_same(page: Page, url: str) -> None:
    page.add_init_script(
        "new MutationObserver((_, self) => { const field = document.querySelector('[data-key=filter]');"
        " if (field) { self.disconnect(); field.value = 'state:error'; } })"
        ".observe(document, {childList: true, subtree: true})"
    )
    page.goto(f"{url}/runs/latest")
    expect(page.locator(".samples .row")).to_have_count(1)
