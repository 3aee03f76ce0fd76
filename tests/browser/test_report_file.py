"""A run as one file, opened from a disk: it reads like the pages, asks nobody for anything and runs nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from server.pages.cases import called, everywhere, keep, outcome, per_turn, turn
from server.pages.hostile import TEXTS
from vivavoce.records.run import Outcome
from vivavoce.records.score import Evidence, Score
from vivavoce.report.export import export
from vivavoce.store.store import Store

from .test_hostile import WATCH

QUOTE = Evidence(text="no refund, ever", turn=1, verified=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with two conversations, and one that holds all that strangers may write."""
    found = tmp_path_factory.mktemp("files")
    with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
        apart.submit(_write, found).result()
    return found


def _write(folder: Path) -> None:
    judged = Score(value=0.0, reason="It refused.", other_evidence=(QUOTE,))
    turns = [turn(0, "Hello", *called("look", '{"order": 7}', "paid"), "Hi"), turn(1, "Money!", "No refund, ever.")]
    refused = outcome("refused", turns, {"goal": judged, "tone": per_turn(1.0, 0.0)})
    strange = [_placed(everywhere(text), place) for place, text in enumerate(TEXTS)]
    with Store.open(str(folder / "kept.db")) as store:
        keep(store, [refused, outcome("kind", [turn(0, "Thanks", "Welcome")], position=1)], "plain")
        keep(store, strange, "strange", suite=TEXTS[0], spec={"description": TEXTS[4]}, version=TEXTS[6])
        for name in ("plain", "strange"):
            export(store, store.run(name), store.grading(name), "html", folder / f"{name}.html")


def _placed(one: Outcome, place: int) -> Outcome:
    return one.model_copy(update={"attempt": one.attempt.model_copy(update={"position": place})})


def opened(browser: Browser, file: Path, **how: str) -> tuple[Page, list[str]]:
    """Return the page of a file, and what it asked for or complained about."""
    page = browser.new_context(color_scheme="dark" if how.get("scheme") == "dark" else "light").new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url))
    page.add_init_script(WATCH)
    page.goto(file.as_uri())
    heard.remove(file.as_uri())
    return page, heard


@pytest.mark.parametrize("width", [1280, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(browser: Browser, folder: Path, scheme: str, width: int) -> None:
    page, heard = opened(browser, folder / "plain.html", scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert heard == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.querySelector('.wordmark')).fontFamily").startswith(
        '"Viva Speech", Charter'
    )
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, found.generate_report()
    page.context.close()


def test_the_list_leads_to_a_conversation_and_its_evidence_to_the_mark(browser: Browser, folder: Path) -> None:
    page, heard = opened(browser, folder / "plain.html")
    page.locator("a.row").first.click()
    assert page.url.endswith("#s1")
    page.locator("#s1 .ev a").first.click()
    assert page.url.endswith("#s1-m0")
    page.locator("#s1 .back a").click()
    assert page.url.endswith("#samples")
    assert heard == []
    page.context.close()


def test_what_strangers_wrote_does_nothing(browser: Browser, folder: Path) -> None:
    page, heard = opened(browser, folder / "strange.html")
    assert heard == []
    assert page.evaluate("hits") == 0
    assert page.locator(".talk").count() == len(TEXTS)
    assert (
        page.evaluate("document.querySelectorAll('script, img, iframe, object, embed, base, math, form').length") == 0
    )
    assert page.evaluate("document.querySelectorAll('style').length") == 1
    page.context.close()


def test_even_a_script_that_got_in_would_not_run(browser: Browser, folder: Path) -> None:
    text = (folder / "plain.html").read_text()
    bad = "<script>xss()</script><img src=x onerror=xss()><p id=bad style='color: red'>x</p>"
    (folder / "forged.html").write_text(text.replace("<main", f"{bad}<main"))
    page, heard = opened(browser, folder / "forged.html")
    assert page.evaluate("hits") == 0
    assert page.evaluate("document.getElementById('bad').style.color") == ""
    assert any("Content Security Policy" in said for said in heard)
    page.context.close()
