"""What messages hold, in a real browser: nothing in it runs, nothing is fetched, and reading and copying it work."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.test_hostile import WATCH
from server.live import serving
from server.pages.cases import called, keep, outcome, turn
from server.pages.hostile import TEXTS
from vivavoce.messages import AIMessage, AnyMessage, ContentPart, HumanMessage, ImagePart, ImageURL
from vivavoce.records.score import Evidence, Finding, Score
from vivavoce.records.trajectory import Turn
from vivavoce.server.pages.links import sample_page
from vivavoce.store.store import Store

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP8z4APMOGVHbHSAEEsAROxCnMTAAAAAElFTkSuQmCC"
STRANGE = """[hits,
    [...document.scripts].filter(one => one.textContent || !one.src.startsWith(`${location.origin}/static/`)).length,
    document.querySelectorAll('iframe, object, embed, base, style, math, link:not([href^="/static/"])').length,
    document.querySelectorAll('img:not([src^="/content?"])').length,
    [...document.querySelectorAll('main a')].filter(one => !/^(https?:|mailto:)/.test(one.href)).length,
    [...document.querySelectorAll('main *')].flatMap(one => one.getAttributeNames()).filter(a => /^on/.test(a)).length,
]"""
WAYS = (
    *("*{}*", "# {}", "- {}\n- *x*", "> {}", "| {} | b |\n|---|---|\n| x | {} |", "~~{}~~", "    {}", "`{}`"),
    *("[{}](http://x.y/)", "[x]({})", "![x]({})", "![{}](http://x.y/)", "<{}>", "[x][r]\n\n[r]: {}"),
    *('[x](http://x.y/ "{}")', "```{}\ncode\n```", "```html\n{}\n```"),
)
LONG = "a long value, because what is short stands on one line of its own and has nothing to fold"
ARGUMENTS = json.dumps({"a": {"b": 2, "c": LONG}})
MARKDOWN = """The **total is** 5 € [there](https://example.org/total), ~~not~~ `here`.

- one
- two

| a | b |
|---|---|
| 1 | 2 |

> x

```python
def it():  # a comment
    return 1
```"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a conversation in which every hostile text stands in all kinds of markup, and a quiet one."""
    with Store.open(str(tmp_path_factory.mktemp("content") / "kept.db")) as store:
        with ThreadPoolExecutor(1) as apart:  # the browser holds the event loop of this thread
            apart.submit(_fill, store).result()
        with serving(store) as address:
            yield address


def _fill(store: Store) -> None:
    keep(store, [outcome(f"bad-{number}", [_hostile(text)]) for number, text in enumerate(TEXTS)], "run-1", at=1)
    picture = ImagePart(image_url=ImageURL(url=f"data:image/png;base64,{PNG}"))
    svg = b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='parent.xss()'/>").decode()
    lies: list[ContentPart] = [
        ImagePart(image_url=ImageURL(url=f"data:image/{kind};base64,{svg}")) for kind in ("svg+xml", "png")
    ]
    remote = ImagePart(image_url=ImageURL(url="https://evil.example/x.png"))
    turns = [
        turn(0, "How much?", *called("add", ARGUMENTS, '{"sum": 5}')),
        turn(1, "And?", MARKDOWN),
        Turn(index=2, messages=[HumanMessage(content=[picture, *lies, remote]), AIMessage(content="Nice")]),
        turn(3, "מה המחיר, 5?", "- אחת\n- *שתיים*"),
    ]
    total, two = (Evidence(text=text, turn=1, verified=True) for text in ("total is** 5", "two"))
    code = Evidence(text="it():  # a comment", turn=1, verified=True)
    call = Evidence(text="c0", kind="call", turn=0, verified=True)
    bad = Finding(kind="criterion", what="right", verdict="no", state="fail", evidence=(total, code, call))
    good = Finding(kind="criterion", what="said", verdict="yes", state="pass", evidence=(total, two))
    keep(store, [outcome("quiet", turns, {"goal": Score(value=0.0, findings=(good, bad))})], "run-2", at=2)


def _hostile(text: str) -> Turn:
    messages: list[AnyMessage] = [AIMessage(content=way.format(*[text] * 2)) for way in WAYS]
    return Turn(index=0, messages=[HumanMessage(content=text), *called(text, f'{{"{text}": 1}}', text), *messages])


def test_nothing_runs_and_nothing_is_fetched_whatever_the_markup(page: Page, base: str) -> None:
    page.add_init_script(WATCH)
    for number in range(len(TEXTS)):
        page.goto(base + sample_page("run-1", f"bad-{number}"))
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert page.evaluate(STRANGE) == [0] * 6, TEXTS[number]


def test_a_picture_is_shown_from_here_and_what_lies_is_not(page: Page, base: str) -> None:
    page.add_init_script(WATCH)
    page.goto(f"{base}/runs/run-2/samples/quiet")
    expect(page.locator("figure.media")).to_have_count(4)
    picture = page.locator("figure.media img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("one => one.naturalWidth") == 10
    expect(page.get_by_text("image at https://evil.example/x.png, not loaded")).to_be_visible()
    assert page.evaluate("hits") == 0


def test_words_that_are_cited_are_copied_without_their_letter(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-2/samples/quiet")
    paragraph = page.locator("#t2 .say p:has(mark)")
    copied = paragraph.evaluate("one => { getSelection().selectAllChildren(one); return getSelection().toString(); }")
    assert copied == "The total is 5 € there (example.org/total), not here."
    letter = "one => getComputedStyle(one.querySelector('sup'), '::after').content"
    assert paragraph.evaluate(letter) == '"b"'


def test_each_mark_has_its_own_colour(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-2/samples/quiet")
    letters = page.locator("#verdict .found a.ref")
    assert [one.get_attribute("class") for one in letters.all()] == [
        "ref met",
        "ref met",
        "ref bad",
        "ref bad",
        "ref bad",
    ]
    wash = "one => getComputedStyle(one.querySelector('a')).backgroundColor"
    transparent = "rgba(0, 0, 0, 0)"
    assert page.locator("#t2 mark.bad").first.evaluate(wash) != transparent
    assert page.locator("#t2 mark.met").first.evaluate(wash) == transparent


def test_what_was_written_is_shown_for_one_message_and_for_all(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-2/samples/quiet")
    said = page.locator("#t2 .say").nth(1)
    said.hover()
    said.get_by_text("Show raw").click()
    expect(said.locator(".rich")).to_be_hidden()
    expect(said.locator("pre").last).to_contain_text("The **total is** 5 €")
    page.locator("#verdict .found a.ref").first.click()
    expect(said.locator("mark:target")).to_be_visible()
    page.get_by_role("link", name="Show messages as they were written").click()
    expect(page.locator(".rich:visible")).to_have_count(0)
    page.get_by_role("link", name="Show messages with their markup").click()
    expect(said.locator(".rich")).to_be_visible()


def test_a_message_code_and_json_are_copied_as_they_were_written(page: Page, base: str) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{base}/runs/run-2/samples/quiet")
    said, code, sheet = page.locator("#t2 .say").nth(1), page.locator("#t2 .code"), page.locator("#t1 .sheet").first
    wanted = {
        said: MARKDOWN,
        code: "def it():  # a comment\n    return 1",
        sheet: json.dumps(json.loads(ARGUMENTS), indent=2),
    }
    for place, text in wanted.items():
        place.hover()
        button = place.locator("> button.copy")
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == text


def test_json_is_folded_with_keys_and_a_mouse(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-2/samples/quiet")
    value = page.locator("#t1 .json details .in").get_by_text(LONG)
    expect(value).to_be_visible()
    page.locator("#t1 .json details summary").focus()
    page.keyboard.press("Enter")
    expect(value).to_be_hidden()
    page.locator("#t1 .json details summary").click()
    expect(value).to_be_visible()


def test_hebrew_reads_from_the_right(page: Page, base: str) -> None:
    page.goto(f"{base}/runs/run-2/samples/quiet")
    assert page.locator("#t4 .plain").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert page.locator("#t4 ul").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert page.locator("#t2 ul").evaluate("one => getComputedStyle(one).direction") == "ltr"


def test_without_a_script_it_reads_the_same(page: Page, base: str) -> None:
    page.route(re.compile(r"/static/.*\.js"), lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.goto(f"{base}/runs/run-2/samples/quiet")
    page.get_by_role("link", name="Show messages as they were written").click()
    expect(page).to_have_url(re.compile(r"raw=1"))
    expect(page.get_by_text("The **total is** 5 €")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 380])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(page: Page, base: str, scheme: Literal["light", "dark"], width: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{base}/runs/run-2/samples/quiet")
    page.evaluate("for (const one of document.querySelectorAll('details:not(.source)')) one.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page)  # pyright: ignore[reportUnknownMemberType]
    assert found.violations_count == 0, found.generate_report()
