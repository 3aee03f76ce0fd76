from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.store.search.query import (
    FIELDS,
    MAX_STRETCH_CHARS,
    OPERATORS,
    Term,
    folded,
    parse_query,
    quoted,
    snippet,
    stretches,
    written,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A refund, please! (order #4711)", "a refund please order 4711"),
        ("https://example.com/a_b?c=1", "https example com a b c 1"),
        ("Grüße aus Łódź", "grusse aus łodz"),
        ("cafe\u0301 CAFÉ", "cafe cafe"),
        ("返金してください", "返 金 し て く た さ い"),
        ("🎓 \x00 — …", ""),
    ],
)
def test_words_are_compared_without_case_accents_and_signs(text: str, words: str) -> None:
    assert " ".join(folded(text).split()) == words


@given(st.text(max_size=60))
def test_every_word_of_a_text_is_found_where_it_stands(text: str) -> None:
    for phrase in filter(None, (" ".join(folded(word).split()) for word in text.split())):
        shown = snippet(text, [phrase])
        assert shown is not None
        assert shown.text in text
        assert folded(shown.text[shown.start : shown.end]).split()[0] == phrase.partition(" ")[0]


def test_a_snippet_shows_what_is_around_the_first_of_the_words() -> None:
    found = snippet("x " * 500 + "the GRÜSSE came " + "y " * 500, ["came", "grusse"])
    assert found is not None
    assert found.text[found.start : found.end] == "GRÜSSE"
    assert len(found.text) < 200
    assert snippet("nothing", ["some"]) is None


@given(st.lists(st.text(max_size=50)))
def test_stretches_hold_every_word_once(texts: list[str]) -> None:
    assert " ".join(stretches(texts)).split() == " ".join(map(folded, texts)).split()


def test_a_long_text_is_several_stretches() -> None:
    assert [len(one) for one in stretches(["ab " * MAX_STRETCH_CHARS, "c"])] == [
        MAX_STRETCH_CHARS,
        MAX_STRETCH_CHARS,
        MAX_STRETCH_CHARS,
        1,
    ]


def test_what_is_typed_is_words_unless_it_is_an_operator() -> None:
    asked = parse_query('refund "OR" NEAR(a-b) words:* Refund "two  words" http://x.y 10:30 "" - -no -"not this"')
    assert asked.words == ("refund", "or", "near a b", "words", "two words", "http x y", "10 30")
    assert asked.excluded == ("no", "not this")
    assert asked.terms == ()


def test_operators_have_values_that_may_be_quoted_and_negated() -> None:
    asked = parse_query('Suite:"support bot" -state:PASS state:fail state:error role:user refund after:2026-10-01')
    assert asked.words == ("refund",)
    assert asked.wanted("suite") == ("support bot",)
    assert asked.wanted("state") == ("fail", "error")
    assert asked.unwanted("state") == ("pass",)
    assert Term("role", "user") in asked.terms
    assert asked.uses("after", "before")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("sute:billing", "no operator 'sute'; did you mean 'suite'?; to find it as text, write \"sute:billing\""),
        ("zzz:1", "known: after, before, grader, role, run, state, suite, tag, target"),
        ("state:fial", "no state 'fial'; did you mean 'fail'?"),
        ("role:bot", "no role 'bot'; known: assistant, tool, user"),
        ("before:yesterday", "'before:yesterday' is not a date; write before:2026-11-01"),
        ("after:2026-13-01", "is not a date"),
        ("-before:2026-01-01", "cannot be excluded; write after:2026-01-01"),
        ("-role:user", "cannot be excluded"),
        ("refund suite: billing", "'suite:' needs a value right after it"),
        ("-refund", "every term excludes"),
        ("x" * 2001, "at most 2,000 allowed"),
        (" ".join(f"tag:t{number}" for number in range(21)), "21 operators, at most 20 allowed"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(typed: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_query(typed)
    assert told in str(refused.value)


def test_every_operator_is_explained_with_an_example_that_can_be_read() -> None:
    assert [one.name for one in OPERATORS] == [*FIELDS]
    for one in OPERATORS:
        (term,) = parse_query(one.example).terms
        assert term.field == one.name


@pytest.mark.parametrize("value", ["support bot", "bot", "-x", "a:b", "ü", "two  blanks", "*"])
def test_a_written_operator_is_read_as_it_was_meant(value: str) -> None:
    query = parse_query(written(" refund ", ("suite", value), ("state", "fail")))
    assert query.wanted("suite") == (value,)
    assert quoted("bot") == "bot"
