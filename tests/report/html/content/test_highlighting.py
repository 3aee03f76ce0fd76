from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.report.html.content.highlighting import LONGEST, highlighted

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
    found = list(highlighted(CODE[language], language))
    assert "".join(text for text, _ in found) == CODE[language]
    assert {kind for _, kind in found} - {""}


@pytest.mark.parametrize("language", ["klingon", "", "../../etc", "x" * 1000, "<script>"])
def test_code_in_an_unknown_language_is_plain(language: str) -> None:
    assert list(highlighted("def f(): 1", language)) == [("def f(): 1", "")]


def test_a_block_that_is_too_long_is_plain() -> None:
    assert len(list(highlighted("x = 1\n" * LONGEST, "python"))) == 1


@given(st.text(), st.sampled_from([*CODE, "html", "console", "pycon"]))
def test_nothing_is_lost(code: str, language: str) -> None:
    assert "".join(text for text, _ in highlighted(code, language)) == code
