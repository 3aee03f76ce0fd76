"""The trend of a suite, with the mouse and with keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from report.trend_cases import keep, says
from server.live import serving
from vivavoce.store.store import Store


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        for number in range(8):
            keep(store, number, says("goal", 0.5 + number / 20), version=str(number // 4))
        with serving(store) as base:
            yield base


def test_dragging_across_the_plot_shows_the_runs_between(url: str, page: Page) -> None:
    page.goto(f"{url}/trends?suite=shop")
    box = page.locator("[data-zoom]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.62 * box["width"], box["y"] + 60)
    page.mouse.up()
    expect(page.locator(".trend-runs .row")).to_have_text(["shop-004", "shop-003", "shop-002"])
    page.get_by_role("link", name="the newest", exact=True).click()
    expect(page.locator(".trend-runs .row")).to_have_count(8)


def test_dots_rows_and_keys_lead_to_the_runs(url: str, page: Page) -> None:
    page.goto(f"{url}/trends")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("goal over 8 runs")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".trend-runs .row").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/shop-006")
    page.go_back()
    page.locator("[data-run='shop-003']").click()
    page.wait_for_url("**/runs/shop-003")


def test_nothing_is_wider_than_a_telephone(url: str, page: Page) -> None:
    page.set_viewport_size({"width": 380, "height": 800})
    for path in ("/trends", "/trends?suite=shop"):
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
