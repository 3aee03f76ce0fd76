from __future__ import annotations

import re
from base64 import b64encode
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.html.content.test_markdown import ALL, FRAGMENTS
from vivavoce.messages import AIMessage, AudioPart, ContentPart, HumanMessage, ImagePart, InputAudio, TextPart
from vivavoce.messages import ImageURL as At
from vivavoce.records.score import Evidence
from vivavoce.report.html.content.message import (
    MAX_CHARS,
    Media,
    RenderedText,
    Sort,
    decode,
    media_of,
    reasoning,
    render_text,
    without_reasoning,
)
from vivavoce.report.html.evidence import Mark, Register

JSON = '{"a": [1, {"b": "x\\u00e9"}], "long": "lorem ipsum dolor sit amet consectetur adipiscing elit", "c": null}'


def render(text: str, *quotes: str, sort: Sort = "speech", raw: bool = False) -> RenderedText:
    register = Register()
    register.enter([Evidence(text=quote, turn=0, verified=True) for quote in quotes], "m0", bad=True)
    return render_text(text, sort, register.marks(text, 0, by_assistant=True), raw=raw)


def marked_words(text: RenderedText) -> str:
    """Return the words that are marked, without their tags."""
    matches = re.findall(r"<mark[^>]*>(.*?)</mark>", text.html, re.DOTALL)
    return unescape("".join(re.sub(r"<[^>]*>", "", piece) for piece in matches))


@pytest.mark.parametrize(
    ("text", "quote", "words"),
    [
        ("the **total is** 5 €", "total is** 5", "total is 5"),
        ("- the first\n- the *second*", "first\n- the *second", "firstthe second"),
        ("| a | b |\n|---|---|\n| one | **two** |", "one | **two**", "onetwo"),
        ("# Head\n\nand `code` here", "Head and", "Headand"),
        ("# Head\n\nand `code` here", "Head\n\nand `code`", "Headand code"),
        ("> quoted\n> words", "quoted\n> words", "quotedwords"),
        ("a [link](http://x.y/z) to", "[link](http://x.y/z)", "linkx.y/z"),
        ("a [link](http://x.y/z) to", "link", "link"),
        ("a *b* &amp; c", "&amp; c", "& c"),
        ("*x*\n```python\nprint(1)  # one\n```", "print(1)  # one", "print(1)  # one"),
        ("*x*\n```python\nprint(1)\n```", "```python", "python"),
        (JSON, '"b": "x\\u00e9"', 'b":"xé"'),
        (JSON, "lorem ipsum", "lorem ipsum"),
    ],
)
def test_what_is_cited_is_marked_whatever_it_goes_over(text: str, quote: str, words: str) -> None:
    assert marked_words(render(text, quote)) == words


def test_what_stands_in_markup_alone_is_marked_in_what_was_written() -> None:
    text = render("*a*\n\n[link]: http://x.y/z\n\nb", "http://x.y/z")
    assert (text.look, marked_words(text)) == ("plain", "http://x.y/z")


@given(FRAGMENTS, st.data())
def test_whatever_is_cited_its_letter_stands_once_on_the_page(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, max(len(text) - 1, 0)))
    quote = text[start : start + data.draw(st.integers(1, 12))]
    register = Register()
    register.enter([Evidence(text=quote, turn=0, verified=True)], "m0", bad=True)
    marks = register.marks(text, 0, by_assistant=True)
    for raw in (False, True):
        content = render_text(text, "speech", marks, raw=raw)
        assert content.html.count('data-letter="a"') == (1 if marks else 0)
        assert content.html.count('id="ev-a"') == (1 if marks else 0)
        assert content.source is None or 'id="' not in content.source


UNSEEN = re.compile(r"\[ref\]: http://r|http://i/x\.png|http:|&amp;")
"""What of `ALL` is markup that is not shown: the definition of a link, the address of a picture, schemes, entities."""


@given(st.sampled_from([ALL, JSON]), st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=5))
def test_all_of_the_words_of_a_mark_are_marked(text: str, spans: list[tuple[int, int]]) -> None:
    register = Register()
    quotes = [text[start : start + length] for start, length in spans]
    register.enter([Evidence(text=quote, turn=0, verified=True) for quote in quotes if quote.strip()], "m0", bad=True)
    marks: list[Mark] = register.marks(text, 0, by_assistant=True)
    content = render_text(text, "speech", marks)
    seen = UNSEEN.sub(lambda match: " " * len(match[0]), text)
    for mark in marks:
        for word in re.findall(r"[a-z]{3,}", seen[mark.start : mark.end]):
            assert word in marked_words(content), word


def test_raw_is_what_was_written_and_so_is_the_source() -> None:
    assert render(ALL, raw=True).look == "plain"
    assert unescape(str(render(ALL).source)) == ALL
    assert unescape(str(render(ALL, raw=True).html)) == ALL


def test_plain_words_are_written_once() -> None:
    assert render("Where is my order?\n\nIt is late.") == RenderedText(
        "Where is my order?\n\nIt is late.",  # pyright: ignore[reportArgumentType]
        "plain",
    )


def test_results_of_tools_are_json_or_what_they_are() -> None:
    assert render("**x**", sort="data").look == "plain"
    assert render('{"a": 1}', sort="data").look == "json"


@pytest.mark.parametrize("sort", ["speech", "data"])
def test_a_text_that_is_too_long_begins_here_and_says_how_much_is_left(sort: Sort) -> None:
    text = render_text("*a* " * MAX_CHARS[sort], sort, (), rest="/content?x")
    assert (text.left, text.rest) == (3 * MAX_CHARS[sort], "/content?x")
    assert len(text.html) < 20 * MAX_CHARS[sort]


def test_a_long_list_is_a_tree_as_far_as_it_is_shown() -> None:
    text = render_text("[" + ", ".join(f'{{"id": {i}}}' for i in range(20_000)) + "]", "data", ())
    assert text.look == "json"
    assert text.html.endswith('<span class="cut">…</span>')
    assert text.left > 0


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "why"},
        {"reasoning": "why"},
        {"thinking": "why"},
        {"reasoning": {"summary": [{"type": "summary_text", "text": "why"}]}},
        {"reasoning_details": [{"type": "reasoning.text", "text": "why"}]},
        {"metadata": {"anthropic": {"content": [{"type": "thinking", "thinking": "why"}]}}},
        {"metadata": {"openai_responses": {"before": [{"type": "reasoning", "summary": [{"text": "why"}]}]}}},
    ],
)
def test_reasoning_is_found_where_models_leave_it(beside: dict[str, Any]) -> None:
    assert reasoning(AIMessage(content="so", **beside)) == "why"


def test_without_reasoning_there_is_none() -> None:
    assert reasoning(AIMessage(content="so", metadata={"reasoning_effort": "low", "deep": {"a": [1]}})) == ""
    assert reasoning(HumanMessage(content="so")) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nwhy\n</think>\n\nso", ("why", "so")),
        ("<thinking>why</thinking>so", ("why", "so")),
        ("<think>why", ("", "<think>why")),
        ("so <think>why</think>", ("", "so <think>why</think>")),
    ],
)
def test_reasoning_before_an_answer_is_taken_from_it(text: str, expected: tuple[str, str]) -> None:
    assert without_reasoning(text) == expected


PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def image(claimed: str, data: bytes) -> Media:
    return read_media(ImagePart(image_url=At(url=f"data:{claimed};base64,{b64encode(data).decode()}")))


def read_media(part: ContentPart) -> Media:
    media = media_of(part)
    assert media is not None
    return media


@pytest.mark.parametrize(
    ("claimed", "data", "media_type"),
    [
        ("image/png", PNG, "image/png"),
        ("image/jpeg", b"\xff\xd8\xff\xe0" + bytes(9), "image/jpeg"),
        ("image/jpg", b"\xff\xd8\xff\xe0" + bytes(9), "image/jpeg"),
        ("image/gif", b"GIF89a" + bytes(9), "image/gif"),
        ("image/webp", b"RIFF\0\0\0\0WEBP" + bytes(9), "image/webp"),
    ],
)
def test_a_raster_image_is_shown_by_its_first_bytes(claimed: str, data: bytes, media_type: str) -> None:
    media = image(claimed, data)
    assert (media.is_shown, media.type) == (True, media_type)
    assert "which is wrong" not in media.words
    assert decode(media) == data


@pytest.mark.parametrize(
    ("format", "data"),
    [("wav", b"RIFF\0\0\0\0WAVE"), ("mp3", b"ID3\x04"), ("mp3", b"\xff\xfb\x90"), ("ogg", b"OggS\0")],
)
def test_sound_is_shown_by_its_first_bytes(format: str, data: bytes) -> None:  # noqa: A002
    media = read_media(AudioPart(input_audio=InputAudio(data=b64encode(data + bytes(20)).decode(), format=format)))
    assert media.is_shown


def test_an_image_that_lies_about_its_type_is_said_so() -> None:
    assert image("image/jpeg", PNG).words == "image, PNG, 1 kB; it says image/jpeg, which is wrong"


@pytest.mark.parametrize(
    ("claimed", "data"),
    [
        ("image/svg+xml", b"<svg onload='xss()'/>"),
        ("image/png", b"<svg onload='xss()'/>"),
        ("image/png", b"<script>xss()</script>"),
        ("text/html", b"<script>xss()</script>"),
        ("image/png", b"RIFF\0\0\0\0WAVE" + bytes(20)),  # sound is no image
        ("image/png", b""),
    ],
)
def test_what_is_no_raster_image_is_never_one(claimed: str, data: bytes) -> None:
    media = image(claimed, data)
    assert not media.is_shown
    assert f"not shown: it says {claimed}" in media.words


@pytest.mark.parametrize("url", ["data:image/svg+xml,<svg/>", "data:image/png;base64,@@@", "data:,x", "data:"])
def test_data_that_is_no_base64_is_never_an_image(url: str) -> None:
    assert not read_media(ImagePart(image_url=At(url=url))).is_shown


def test_an_image_elsewhere_is_named_and_not_loaded() -> None:
    media = read_media(ImagePart(image_url=At(url="https://example.org/a.png")))
    assert (media.is_shown, media.words) == (False, "image at https://example.org/a.png, not loaded")


def test_words_are_no_media() -> None:
    assert media_of(TextPart(text="x")) is None
