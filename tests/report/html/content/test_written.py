from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.html.content.test_markdown import ALL, FRAGMENTS
from vivavoce.records.score import Evidence
from vivavoce.report.html.content.written import LONGEST, Sort, Written, written
from vivavoce.report.html.evidence import Mark, Register

JSON = '{"a": [1, {"b": "x\\u00e9"}], "long": "lorem ipsum dolor sit amet consectetur adipiscing elit", "c": null}'


def shown(text: str, *quotes: str, sort: Sort = "speech", raw: bool = False) -> Written:
    register = Register()
    register.enter([Evidence(text=quote, turn=0, verified=True) for quote in quotes], "m0", bad=True)
    return written(text, sort, register.marks(text, 0, by_assistant=True), raw=raw)


def marked(one: Written) -> str:
    """Return the words that are marked, without their tags."""
    found = re.findall(r"<mark[^>]*>(.*?)</mark>", one.html, re.DOTALL)
    return unescape("".join(re.sub(r"<[^>]*>", "", piece) for piece in found))


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
    assert marked(shown(text, quote)) == words


def test_what_stands_in_markup_alone_is_marked_in_what_was_written() -> None:
    one = shown("*a*\n\n[link]: http://x.y/z\n\nb", "http://x.y/z")
    assert (one.look, marked(one)) == ("plain", "http://x.y/z")


@given(FRAGMENTS, st.data())
def test_whatever_is_cited_its_letter_stands_once_on_the_page(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, max(len(text) - 1, 0)))
    quote = text[start : start + data.draw(st.integers(1, 12))]
    register = Register()
    register.enter([Evidence(text=quote, turn=0, verified=True)], "m0", bad=True)
    marks = register.marks(text, 0, by_assistant=True)
    for raw in (False, True):
        one = written(text, "speech", marks, raw=raw)
        assert one.html.count('data-letter="a"') == (1 if marks else 0)
        assert one.html.count('id="ev-a"') == (1 if marks else 0)
        assert one.source is None or 'id="' not in one.source


UNSEEN = re.compile(r"\[ref\]: http://r|http://i/x\.png|http:|&amp;")
"""What of `ALL` is markup that is not shown: the definition of a link, the address of a picture, schemes, entities."""


@given(st.sampled_from([ALL, JSON]), st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=5))
def test_all_of_the_words_of_a_mark_are_marked(text: str, spans: list[tuple[int, int]]) -> None:
    register = Register()
    quotes = [text[start : start + length] for start, length in spans]
    register.enter([Evidence(text=one, turn=0, verified=True) for one in quotes if one.strip()], "m0", bad=True)
    marks: list[Mark] = register.marks(text, 0, by_assistant=True)
    one = written(text, "speech", marks)
    seen = UNSEEN.sub(lambda found: " " * len(found[0]), text)
    for mark in marks:
        for word in re.findall(r"[a-z]{3,}", seen[mark.start : mark.end]):
            assert word in marked(one), word


def test_raw_is_what_was_written_and_so_is_the_source() -> None:
    assert shown(ALL, raw=True).look == "plain"
    assert unescape(str(shown(ALL).source)) == ALL
    assert unescape(str(shown(ALL, raw=True).html)) == ALL


def test_plain_words_are_written_once() -> None:
    assert shown("Where is my order?\n\nIt is late.") == Written(
        "Where is my order?\n\nIt is late.",  # pyright: ignore[reportArgumentType]
        "plain",
    )


def test_results_of_tools_are_json_or_what_they_are() -> None:
    assert shown("**x**", sort="data").look == "plain"
    assert shown('{"a": 1}', sort="data").look == "json"


@pytest.mark.parametrize("sort", ["speech", "data"])
def test_a_text_that_is_too_long_begins_here_and_says_how_much_is_left(sort: Sort) -> None:
    one = written("*a* " * LONGEST[sort], sort, (), rest="/content?x")
    assert (one.left, one.rest) == (3 * LONGEST[sort], "/content?x")
    assert len(one.html) < 20 * LONGEST[sort]


def test_a_long_list_is_a_tree_as_far_as_it_is_shown() -> None:
    one = written("[" + ", ".join(f'{{"id": {i}}}' for i in range(20_000)) + "]", "data", ())
    assert one.look == "json"
    assert one.html.endswith('<span class="cut">…</span>')
    assert one.left > 0
