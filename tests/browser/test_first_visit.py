"""Somebody comes for the first time: from a store without runs to the comparison of two versions with one click."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from server.live import serving
from vivavoce.server.policy import ServerPolicy
from vivavoce.store.store import Store


@pytest.fixture
def new(tmp_path: Path) -> Iterator[str]:
    """A server around a store without runs."""
    with Store.open(str(tmp_path / "kept.db")) as store, serving(store, ServerPolicy(tmp_path)) as url:
        yield url


def everybody_can_read(page: Page) -> None:
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, f"{page.url}: {found.generate_report()}"


@pytest.mark.parametrize("width", [1280, 380])
def test_one_click_leads_to_the_comparison_of_two_versions(new: str, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(new)
    everybody_can_read(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Start the demo").click()
    page.wait_for_url("**/compare?**")
    expect(page.get_by_text("question-before-yes").first).to_be_visible()
