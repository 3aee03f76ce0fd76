"""A real browser, and a server with real runs in its store."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from forked import program
from server.live import serving
from vivavoce.store.store import Store

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "examples" / "support_bot"
ALONE = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
"""A browser that talks to nobody of its own accord."""


expect.set_options(timeout=60_000)  # a busy machine may need long for what another one does at once


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium; without one the pages are not tested, which is a failure.

    Chromium without windows draws the same pages in a third of the time that the whole browser takes.

    It holds the event loop of this thread as long as it is open, so it is closed before any other test.
    """
    found = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert found is not None, "there is no Chromium: `make programs` installs it"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=list(ALONE))
        yield started
        started.close()


REFUSED = "Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"
"""What Chromium writes to its console of a request that is refused."""


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of a browser that knows nothing; what it asks of others or complains about is a failure.

    A test marked `refused_filters` types filters that the server refuses, which the browser notes; nothing else may be.
    A test names it after its server, so that it is closed before the server ends.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    opened = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    refused = request.node.get_closest_marker("refused_filters") is not None

    def heard(message: ConsoleMessage) -> None:
        if not (refused and message.text == REFUSED and "filter=" in message.location["url"]):
            complaints.append(f"{message.type}: {message.text}")

    opened.on("console", heard)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith("http://127.0.0.1:")] == []


@pytest.fixture(scope="package")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with two runs of the example: a release of a bot that passes its gate, and one that does not."""
    path = str(tmp_path_factory.mktemp("store") / "kept.db")
    for bot in ("bot_v1.py", "bot_v2.py"):
        command = [
            program("viva"),
            "run",
            str(SUITE / "suite.yaml"),
            "--target",
            f"{SUITE / bot}:reply",
            "--store",
            path,
            "--quiet",
        ]
        assert subprocess.run(command, capture_output=True, check=False).returncode in (0, 1)
    with Store.open(path) as store, serving(store) as base:
        yield base
