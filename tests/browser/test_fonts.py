"""The pages bring their own fonts: small, licensed, from this server alone, and used."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page

from server.live import get
from vivavoce.report.html.rendering import STATIC

FONTS = STATIC / "fonts"
LARGEST = 150_000
"""Maximum bytes of all fonts together."""


def test_the_fonts_are_small_and_each_has_its_licence() -> None:
    files = sorted(FONTS.glob("*.woff2"))
    assert sum(file.stat().st_size for file in files) <= LARGEST
    for file in files:
        family = re.split(r"[-.]", file.name)[0]
        licence = (FONTS / f"{family}.OFL.txt").read_text()
        assert "SIL OPEN FONT LICENSE Version 1.1" in licence
        assert licence.startswith("Copyright")


def test_no_reserved_name_is_the_name_of_a_family() -> None:
    families = re.findall(r'font-family: "([^"]+)"', (STATIC / "fonts.css").read_text())
    reserved = re.findall(r'"(\w+)"', "".join(_reserving(file) for file in FONTS.glob("*.txt")))
    assert {"Charis", "SIL", "Plex"} == {*reserved}
    assert not [family for family in families if any(name in family.split() for name in reserved)]


def _reserving(licence: Path) -> str:
    return "".join(re.findall(r"with Reserved Font Name.*", licence.read_text()))


def test_a_font_is_kept_for_a_year_and_a_missing_one_is_not(url: str) -> None:
    found = get(f"{url}/static/fonts/sans.1.woff2")
    assert (found.status, found.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    missing = get(f"{url}/static/fonts/other.woff2")
    assert (missing.status, missing.headers["cache-control"]) == (404, "no-cache")


def test_a_conversation_uses_them_and_loads_none_from_elsewhere(page: Page, url: str) -> None:
    page.goto(f"{url}/runs/latest")
    page.locator(".samples .row").first.click()
    page.locator("article.turn").first.wait_for()
    loaded = page.evaluate(
        "document.fonts.ready.then(() => [...document.fonts].filter((one) => one.status === 'loaded')"
        ".map((one) => one.family.replaceAll('\"', '')))"
    )
    assert {"Viva Speech", "Viva Sans", "Viva Mono"} <= {*loaded}
