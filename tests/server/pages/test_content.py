"""What a message holds, at addresses of its own: never as something that a browser would run."""

from __future__ import annotations

from base64 import b64encode

import pytest

from server.live import get
from server.pages.cases import called, keep, outcome, turn
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    ContentPart,
    HumanMessage,
    ImagePart,
    ImageURL,
    SystemMessage,
    TextPart,
    ToolMessage,
)
from vivavoce.records.trajectory import Turn
from vivavoce.store.store import Store

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='xss()'/>"
AT = "/content?run=run-1&sample=one&target=bot"


def image(claimed: str, data: bytes) -> ImagePart:
    return ImagePart(image_url=ImageURL(url=f"data:{claimed};base64,{b64encode(data).decode()}"))


@pytest.fixture
def at(empty: Store, url: str) -> str:
    """The beginning of addresses of a conversation with all kinds of content."""
    pictures = [image("image/jpeg", PNG), image("image/svg+xml", SVG), image("image/png", SVG)]
    parts: list[ContentPart] = [TextPart(text="look"), *pictures]
    asked = Turn(index=0, messages=[HumanMessage(content=parts), *called("find", '{"a": 1}', "<b>found</b>")])
    keep(
        empty,
        [outcome("one", [asked, turn(1, "Bye", "<script>xss()</script>")], opening=[SystemMessage(content="Hi.")])],
    )
    return url + AT


def test_a_picture_has_the_type_that_its_bytes_say_and_a_policy_of_its_own(at: str) -> None:
    answer = get(f"{at}&turn=1&message=0&part=1")
    assert (answer.status, answer.headers["content-type"]) == (200, "image/png")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("part", [0, 2, 3, 4, 10**6])
def test_what_is_no_raster_image_is_not_given(at: str, part: int) -> None:
    answer = get(f"{at}&turn=1&message=0&part={part}")
    assert answer.status == 404
    assert "svg" not in answer.headers["content-type"]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("&turn=2&message=1", "<script>xss()</script>"),
        ("&turn=1&message=1&call=0", '{"a": 1}'),
        ("&turn=1&message=2", "<b>found</b>"),
        ("&message=0", "Hi."),
        ("&turn=2", "user: Bye\n\nassistant: <script>xss()</script>"),
    ],
)
def test_a_text_is_given_as_text(at: str, place: str, text: str) -> None:
    answer = get(at + place)
    assert (answer.status, answer.text) == (200, text)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("address", "status"),
    [
        (f"{AT}&turn=3&message=0", 404),
        (f"{AT}&turn=1&message=9", 404),
        (f"{AT}&turn=1&message=1&call=9", 404),
        (f"{AT}&turn=1&message=0&call=0", 404),
        (f"{AT}&trial=2", 404),
        ("/content?run=run-1&sample=other&target=bot", 404),
        ("/content?run=run-1&sample=one&target=other", 404),
        ("/content?run=other&sample=one&target=bot", 404),
        ("/content?run=run-1&sample=one", 422),
        (f"{AT}&turn=0", 422),
        (f"{AT}&turn=1&message=-1", 422),
    ],
)
def test_what_is_not_there_is_said(at: str, address: str, status: int) -> None:
    answer = get(at.removesuffix(AT) + address)
    assert answer.status == status
    assert "Traceback" not in answer.text


def test_a_page_shows_pictures_from_there_and_names_the_others(at: str) -> None:
    page = get(f"{at.removesuffix(AT)}/runs/run-1/samples/one").text
    assert page.count("<img") == 1
    assert "turn=1&amp;message=0&amp;part=1" in page
    assert "it says image/jpeg, which is wrong" in page
    assert page.count("not shown: it says image/") == 2


def test_a_message_of_50_megabytes_begins_on_the_page_and_is_whole_at_its_address(empty: Store, url: str) -> None:
    text = "A **word**, and so on. " * (50_000_000 // 23)
    keep(empty, [outcome("one", [turn(0, "Go on", text)])])
    page = get(f"{url}/runs/run-1/samples/one")
    assert len(page.text) < 400_000
    assert f"{len(text) - 50_000:,} more characters" in page.text
    assert get(f"{url}{AT}&turn=1&message=1").text == text


def test_a_turn_with_10_000_calls_shows_the_first_and_those_that_are_cited(empty: Store, url: str) -> None:
    calls: list[AnyMessage] = [one for i in range(10_000) for one in called(f"tool{i}", "{}", "{}")]
    messages = [HumanMessage(content="Go"), *calls, AIMessage(content="Done")]
    keep(empty, [outcome("one", [Turn(index=0, messages=messages)])])
    page = get(f"{url}/runs/run-1/samples/one").text
    assert "tool298<" in page
    assert "tool299<" not in page
    assert "and 9,702 more messages and calls in this turn" in page
    assert "tool9999({})" in get(f"{url}{AT}&turn=1").text


@pytest.mark.parametrize("result", ["Error: no such order", '{"error": "no"}', '{"status": "failed"}'])
def test_a_failed_call_says_so(empty: Store, url: str, result: str) -> None:
    keep(empty, [outcome("one", [turn(0, "Go", *called("find", "{}", result))])])
    assert 'class="failed"' in get(f"{url}/runs/run-1/samples/one").text


@pytest.mark.parametrize("notes", [{"failed": True}, {"status": "error"}, {"autogen": {"is_error": True}}])
def test_a_result_that_is_marked_as_failed_says_so(empty: Store, url: str, notes: dict[str, object]) -> None:
    asked, answered = called("find", "{}", "nothing")
    assert isinstance(answered, ToolMessage)
    keep(empty, [outcome("one", [turn(0, "Go", asked, answered.model_copy(update={"metadata": notes}))])])
    assert 'class="failed"' in get(f"{url}/runs/run-1/samples/one").text


def test_a_call_that_worked_is_not_marked(empty: Store, url: str) -> None:
    keep(empty, [outcome("one", [turn(0, "Go", *called("find", "{}", '{"error": null, "ok": true}'))])])
    assert 'class="failed"' not in get(f"{url}/runs/run-1/samples/one").text


def test_speakers_have_their_names_and_reasoning_is_folded(empty: Store, url: str) -> None:
    said = AIMessage.model_validate({"content": "Done", "name": "planner", "reasoning_content": "First *this*."})
    keep(empty, [outcome("one", [turn(0, "Go", said, "<think>Hm.</think>Also done")])])
    page = get(f"{url}/runs/run-1/samples/one").text
    assert '<p class="who re" dir="auto">planner</p>' in page
    assert page.count("<summary>reasoning</summary>") == 2
    assert "First <em>this</em>." in page
    assert "&lt;think" not in page


def test_raw_shows_messages_as_they_were_written(empty: Store, url: str) -> None:
    keep(empty, [outcome("one", [turn(0, "Go", "**Done**")])])
    assert "<strong>Done</strong>" in get(f"{url}/runs/run-1/samples/one").text
    raw = get(f"{url}/runs/run-1/samples/one?raw=1").text
    assert "**Done**" in raw
    assert "<strong>Done</strong>" not in raw
    assert "Show messages with their markup" in raw
