"""The page of clusters in a browser: its examples are links that can be seen, reached with keys and heard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from server.live import serving
from vivavoce.store.store import Store
from watch_cases import bad, judge


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with Store.open(str(tmp_path / "kept.db")) as store:
        reasons = ["The price is wrong.", "The price is wrong!", "It asks for a password.", "It is rude."]
        judge(store, monkeypatch, [(f"s{at}", 1e9 + at, bad(why)) for at, why in enumerate(reasons)])
        with serving(store) as base:
            yield f"{base}/runs/live-1/clusters"


def test_examples_look_like_links_and_keys_step_through_them(url: str, page: Page) -> None:
    page.goto(url)
    first = page.locator(".examples a").first
    expect(first).to_have_css("text-decoration-line", "underline")
    colours = page.evaluate(
        "[...document.querySelectorAll('.examples a, .foot a')].map((a) => getComputedStyle(a).color)"
    )
    assert len(set(colours)) == 1
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".examples a").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/live-1/samples/s*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_everybody(url: str, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 380, "height": 800})
    page.goto(url)
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, found.generate_report()
