"""What strangers wrote does nothing in a real browser, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Page

from server.live import serving
from server.pages.cases import everywhere, keep
from server.pages.hostile import TEXTS
from vivavoce.server.pages.links import run_page, sample_page
from vivavoce.store.store import Store

STRANGE = """[hits,
    [...document.scripts].filter(one => one.textContent || !one.src.startsWith(`${location.origin}/static/`)).length,
    document.querySelectorAll('img, iframe, object, embed, base, style, math').length]"""
"""How often something was called, and how many scripts and elements no page of ours has."""

WATCH = "window.hits = 0; window.xss = () => { window.hits += 1; };"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a run for each of the texts."""
    with Store.open(str(tmp_path_factory.mktemp("hostile") / "kept.db")) as store:
        with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
            apart.submit(_fill, store).result()
        with serving(store) as base:
            yield base


def _fill(store: Store) -> None:
    for number, text in enumerate(TEXTS):
        more: dict[str, Any] = {"suite": text, "spec": {"description": text}, "version": text}
        keep(store, [everywhere(text)], f"run-{number}", at=number, **more)


def test_nothing_runs_and_nothing_is_fetched(page: Page, hostile: str) -> None:
    page.add_init_script(WATCH)
    page.goto(hostile)
    assert page.evaluate("hits") == 0
    for number, text in enumerate(TEXTS):
        for path in (run_page(f"run-{number}"), sample_page(f"run-{number}", text)):
            page.goto(hostile + path)
            assert page.evaluate(STRANGE) == [0, 0, 0], (path, text)
    page.keyboard.press("t")
    assert page.evaluate("hits") == 0


@pytest.mark.refused_filters
def test_a_hostile_filter_is_typed_and_stays_a_text(page: Page, hostile: str) -> None:
    page.add_init_script(WATCH)
    page.goto(f"{hostile}/runs/run-0")
    for text in TEXTS[:20]:
        with page.expect_response(lambda answer: "filter=" in answer.url):
            page.get_by_label("Filter samples").fill(text)
    page.reload()
    assert page.evaluate(STRANGE) == [0, 0, 0]
