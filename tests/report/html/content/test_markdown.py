from __future__ import annotations

import gc
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.html.content.blocks import (
    CodeBlock,
    Heading,
    ItemList,
    Leaf,
    Link,
    Paragraph,
    Quoted,
    Table,
    leaves,
)
from vivavoce.report.html.content.markdown import MAX_CHARS, has_markup, highlight, markdown
from vivavoce.report.html.content.writing import tree

CODE = {
    "python": "def f(x):  # why\n    return 'a'",
    "typescript": "const a: string = `x`; // why",
    "sql": "SELECT a FROM b -- why",
    "bash": "if true; then echo hi; fi # why",
    "diff": "- a\n+ b",
    "json": '{"a": 1}',
}


@pytest.mark.parametrize("language", CODE)
def test_code_in_a_known_language_has_kinds(language: str) -> None:
    pieces = list(highlight(CODE[language], language))
    assert "".join(text for text, _ in pieces) == CODE[language]
    assert {kind for _, kind in pieces} - {""}


@pytest.mark.parametrize("language", ["klingon", "", "../../etc", "x" * 1000, "<script>"])
def test_code_in_an_unknown_language_is_plain(language: str) -> None:
    assert list(highlight("def f(): 1", language)) == [("def f(): 1", "")]


def test_a_block_that_is_too_long_is_plain() -> None:
    assert len(list(highlight("x = 1\n" * MAX_CHARS, "python"))) == 1


@given(st.text(), st.sampled_from([*CODE, "html", "console", "pycon"]))
def test_nothing_is_lost(code: str, language: str) -> None:
    assert "".join(text for text, _ in highlight(code, language)) == code


ALL = r"""# Head *x* ##
para \* and &amp; `co  de` [li **nk**](http://a.b/c "t") <http://z.y> tail
second
third ![al*t*](http://i/x.png) end

Set
---
> quote
> more **b

- [ ] a
- b

  ```python x
  print(1) # c
  ```

| a | b\|c |
|---|:-:|
| 1 | **2** |

[ref]: http://r
see [ref] ~~x~~ <b>html</b> [no](javascript:x) `a
b`

    indented
"""
FRAGMENTS = st.lists(
    st.sampled_from(
        [*"*_`~[]()<>!#|-&\\ \n", "a", "b c", "**", "```\n", "](http://x.y/z)", "&amp;", "- ", "1. ", "> "]
    ),
    max_size=40,
).map("".join)


def html(text: str) -> str:
    return tree(markdown(text), ()) or ""


def test_blocks_are_what_they_say() -> None:
    kinds = [type(block) for block in markdown(ALL)]
    assert kinds == [Heading, Paragraph, Heading, Quoted, ItemList, Table, Paragraph, CodeBlock]


def test_every_leaf_knows_where_it_was_written() -> None:
    for leaf in leaves(markdown(ALL)):
        assert leaf.verbatim == (ALL[leaf.start : leaf.end] == leaf.text), leaf


@given(FRAGMENTS)
def test_whatever_is_written_what_is_verbatim_stands_there(text: str) -> None:
    for leaf in leaves(markdown(text)):
        assert 0 <= leaf.start <= leaf.end <= len(text)
        assert not leaf.verbatim or text[leaf.start : leaf.end] == leaf.text


@given(FRAGMENTS)
def test_what_has_no_markup_would_be_one_paragraph_of_the_same_words(text: str) -> None:
    if has_markup(text):
        return
    texts = [leaf.text for leaf in leaves(markdown(text))]
    assert "".join("".join(texts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "address",
    [
        "javascript:xss()",
        "JaVaScRiPt:xss()",
        "data:text/html,x",
        "//evil.example",
        "/runs",
        "#t1",
        "vbscript:x",
        "file:///etc",
    ],
)
def test_a_link_that_leads_elsewhere_than_to_the_web_stays_a_text(address: str) -> None:
    for text in (f"[x]({address})", f"![x]({address})", f"<{address}>", f"[x][r]\n\n[r]: {address}"):
        assert "<a" not in html(text), text


def test_a_link_says_where_it_leads_unless_its_words_do() -> None:
    (block,) = markdown("[a bank](https://evil.example/bank) and <https://example.org>")
    assert isinstance(block, Paragraph)
    first, second = (part for part in block.inside if isinstance(part, Link))
    assert isinstance(first.leads, Leaf)
    assert second.leads is None
    assert "(evil.example/bank)" in html("[a bank](https://evil.example/bank)")
    assert 'rel="noopener noreferrer nofollow"' in html("<https://example.org>")


def test_an_image_is_named_and_never_loaded() -> None:
    assert "<img" not in html("![a cat](https://example.org/cat.png)")
    assert "a cat" in html("![a cat](https://example.org/cat.png)")


def test_html_is_text() -> None:
    assert html("<b>x</b> & <script>") == '<p dir="auto">&lt;b&gt;x&lt;/b&gt; &amp; &lt;script&gt;</p>'
    assert html('```"><script>\nx\n```').count("<script") == 0


def test_headings_do_not_disturb_the_outline_of_the_page() -> None:
    assert html("# a\n\n###### b") == '<p class="h h1" dir="auto">a</p><p class="h h6" dir="auto">b</p>'


def test_a_list_goes_the_way_of_its_words() -> None:
    assert html("- א\n- ב") == '<ul dir="auto"><li><div>א</div></li><li><div>ב</div></li></ul>'


def test_the_end_of_a_line_stays() -> None:
    assert html("*a*\nb") == '<p dir="auto"><em>a</em><br>b</p>'


def test_what_turns_the_reading_direction_is_shown() -> None:
    assert html("*a*\u202eb") == '<p dir="auto"><em>a</em><span class="unseen">U+202E</span>b</p>'


LENGTH = 48_000


def hard(length: int) -> dict[str, str]:
    """Return texts of about this length that some readers of Markdown take long for, by name."""
    return {
        "brackets": "[" * length,
        "pairs of brackets": "[]" * (length // 2),
        "images": "![" * (length // 2),
        "quotes": ">" * length,
        "stars": "*" * length,
        "open emphasis": "*a **b " * (length // 7),
        "nested emphasis": "**a " * (length // 8) + " b**" * (length // 8),
        "ticks": "".join("`" * (i % 50 + 1) + "a" for i in range(length // 26)),
        "links": "[a](" * (length // 4),
        "addresses": "[a](<b" * (length // 6),
        "names": "[a][" * (length // 4),
        "entities": "&" * length,
        "lists": "- " * (length // 2),
        "indents": "".join(" " * (i % 200) + "- a\n" for i in range(length // 100)),
        "cells": "|a" * 300 + "\n" + "|-" * 300 + "\n" + ("|b" * 300 + "\n") * (length // 600),
        "underlines": "a\n" * (length // 2) + "===",
        "dashes": "-" * length + "x",
        "spaces": " " * length + "x",
        "definitions": "".join(f"[{i}]: b\n" for i in range(length // 8)) + "[1]",
    }


@pytest.mark.parametrize("name", hard(LENGTH))
def test_no_text_takes_time_that_grows_faster_than_it(name: str) -> None:
    def once(text: str) -> float:
        start_time = time.process_time()
        has_markup(text)
        html(text)
        return time.process_time() - start_time

    def grows_evenly() -> bool:
        gc.disable()  # how long that takes depends on what other tests have left
        try:
            return once(hard(LENGTH)[name]) < 10 * once(hard(LENGTH // 4)[name]) + 0.25
        finally:
            gc.enable()

    assert any(grows_evenly() for _ in range(5))
