"""People who cannot see colours, or the page at all, get what everybody gets: axe finds nothing."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

PAGES = (
    "/",
    "/?q=nothing-is-called-so",
    "/runs/latest",
    "/runs/latest?filter=state:nonsense",
    "/runs/latest/samples/question-before-yes",
    "/runs/latest/samples/not-arrived-yet",
    "/runs/nobody",
    "/runs/latest/delete",
    "/compare",
    "/compare?a=latest~1&b=latest",
    "/compare?a=latest~1&b=latest&only=worsened",
    "/compare/samples?a=latest~1&b=latest&sample_a=correction&sample_b=correction",
    "/trends",
    "/trends?suite=support+bot",
    "/jobs",
    "/sign-in",
    "/label",
    "/label?run=latest&grader=answers",
    "/label?run=latest&grader=answers&blind=1",
)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 380)])
def test_axe_finds_nothing(browser: Browser, url: str, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    for path in PAGES:
        page.goto(url + path)
        found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
    context.close()
