"""The page of what watches production, in a browser: with keys, on a telephone, for people who cannot see it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from server.live import serving
from vivavoce.store.store import Store
from watch_cases import HOUR, alert, bad, figures, good, judge, spending, told


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        now = time.time()
        here = int(now // HOUR) * HOUR
        judge(store, monkeypatch, [("a", now - 9, good()), ("b", now - 8, bad()), ("c", now - 7, bad())])
        hours = {here - at * HOUR: figures(20 - at, at, arrived=100, errors=at % 3) for at in range(12)}
        told(store, "live", now, hours, share=0.2, spending=spending(calls=7, max_calls=9), alert=alert("firing"))
        with serving(store) as base:
            yield base


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_everybody(url: str, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in ("/watch", "/watch?per=day"):
        page.goto(url + path)
        found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
        assert found.violations_count == 0, found.generate_report()


def test_it_is_not_wider_than_a_telephone(url: str, page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(f"{url}/watch")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_keys_and_dots_lead_to_what_failed_and_to_the_figures(url: str, page: Page) -> None:
    page.goto(f"{url}/runs/live-1")
    page.get_by_role("link", name="Watch", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Monitoring live")
    page.locator(".over a").first.click()
    expect(page.locator("tr:target")).to_have_count(1)
    page.goto(f"{url}/watch")
    page.keyboard.press("j")
    expect(page.locator(".examples .row").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/live-1/samples/c?*")


def test_the_time_that_is_shown_is_chosen_without_a_script(url: str, page: Page) -> None:
    page.goto(f"{url}/watch")
    page.get_by_label("Time").select_option("day")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/watch?name=live&per=day")
    expect(page.get_by_text("in the last 30 days")).to_be_visible()
