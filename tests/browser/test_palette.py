"""The box that searches everything, and the palette that `/` opens: with keys alone, and without a script."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

WALKED = (
    "/",
    "/runs/latest",
    "/runs/latest/clusters",
    "/runs/latest/samples/question-before-yes",
    "/compare",
    "/compare?a=latest~1&b=latest",
    "/trends",
    "/trends?suite=support+bot",
    "/label",
    "/jobs",
    "/search",
    "/search?q=refund",
    "/search?q=sate:fail",
)
MOST_STEPS = 400
"""Presses of Tab in which every page is walked through."""

PLACE = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect(), own = getComputedStyle(one);
  const line = (style) => parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none";
  const seen = [own, getComputedStyle(one, "::after"), getComputedStyle(one.parentElement)].some(line);
  return one === document.body ? null : [one.tagName, one.href || one.name || one.textContent.trim().slice(0, 40), seen,
    box.width > 0 && box.height > 0];
}"""


def readable(page: Page) -> None:
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, f"{page.url}: {found.generate_report()}"


def test_a_search_leads_from_any_page_to_the_very_turn(page: Page, url: str) -> None:
    page.goto(f"{url}/trends")
    page.get_by_role("combobox", name="Search everything").fill('"shipping costs" role:user')
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    expect(page.locator(".hits mark").first).to_have_text("shipping costs")
    readable(page)
    page.locator(".hits .row").first.click()
    assert page.url.endswith("#t2")
    expect(page.locator("#t2")).to_be_in_viewport()


def test_operators_and_values_complete_with_keys(page: Page, url: str) -> None:
    page.goto(f"{url}/search")
    field = page.get_by_role("combobox")
    field.press_sequentially("refund su")
    expect(page.get_by_role("option")).to_have_count(1)
    expect(field).to_have_attribute("aria-expanded", "true")
    readable(page)
    field.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "completions-0")
    field.press("Enter")
    expect(field).to_have_value("refund suite:")
    expect(page.get_by_role("option", name='"support bot"')).to_be_visible()
    field.press("ArrowDown")
    field.press("Enter")
    expect(field).to_have_value('refund suite:"support bot" ')
    expect(page.get_by_role("listbox")).to_be_hidden()
    field.press_sequentially("st")
    field.press("Escape")
    expect(page.get_by_role("listbox")).to_be_hidden()
    field.press_sequentially("ate:fa")
    expect(page.get_by_role("option", name="fail")).to_be_visible()
    field.press("ArrowUp")
    field.press("Enter")
    field.press("Enter")
    page.wait_for_url("**/search?q=*")
    expect(page.locator(".hits .row").first).to_be_visible()


def test_the_palette_goes_to_pages_and_runs_and_searches(page: Page, url: str) -> None:
    page.goto(url)
    page.keyboard.press("/")
    dialog = page.get_by_role("dialog", name="Go to")
    expect(dialog.get_by_role("option")).to_have_count(10)
    expect(dialog.get_by_role("combobox")).to_be_focused()
    readable(page)
    page.keyboard.type("trends?/j")
    expect(dialog.get_by_role("option")).to_have_text(["Search for trends?/j everything"])
    page.keyboard.press("Control+a")
    page.keyboard.type("tren")
    expect(dialog.get_by_role("option")).to_have_count(2)
    page.keyboard.press("Enter")
    page.wait_for_url("**/trends")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("refund form")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=refund%20form")


def test_the_palette_leads_to_the_filter_of_a_list_and_keys_stay_in_fields(page: Page, url: str) -> None:
    page.goto(f"{url}/runs/latest")
    page.keyboard.press("/")
    page.keyboard.type("filter")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Filter samples")).to_be_focused()
    page.keyboard.type("a/b?")
    expect(page.get_by_label("Filter samples")).to_have_value("a/b?")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("search everything")


@pytest.mark.parametrize("path", WALKED)
def test_tab_walks_over_every_page_with_a_visible_place(browser: Browser, url: str, path: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(url + path)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(url + path)
    reachable = page.evaluate(
        "[...document.querySelectorAll('a[href], button, input, select, textarea, summary')]"
        ".filter(one => one.type !== 'hidden' && one.tabIndex >= 0 && one.checkVisibility({visibilityProperty: true})"
        " && !one.disabled && one.type !== 'radio').length"
    )
    steps: list[list[object]] = []
    for _ in range(MOST_STEPS):
        page.keyboard.press("Tab")
        here = page.evaluate(PLACE)
        if here is None:
            break
        steps.append(here)
    assert len(steps) < MOST_STEPS
    assert len(steps) >= reachable
    assert [step for step in steps if not step[2] or not step[3]] == []
    context.close()


def test_without_a_script_the_box_searches_and_explains_itself(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/runs/latest")
    page.get_by_label("Search everything", exact=True).fill("state:fail refund")
    page.get_by_label("Search everything", exact=True).press("Enter")
    expect(page.locator(".hits .row").first).to_be_visible()
    page.get_by_text("What you can type").click()
    page.get_by_role("link", name="role:tool").click()
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), (1280, "light")])
def test_the_search_page_fits_and_everybody_can_read_it(browser: Browser, url: str, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    for path in ("/search", "/search?q=refund", "/search?q=unheard", "/search?q=sate:fail", "/"):
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        readable(page)
    context.close()
