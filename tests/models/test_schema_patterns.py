"""Patterns of JSON Schema say what ECMA 262 says."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.models.json_schema import mismatch
from vivavoce.models.schema_texts import schema_pattern

CASES = [
    ("^a$", "a", True),
    ("^a$", "a\n", False),
    ("^(a|b$)", "b\n", False),
    (r"^\$$", "$", True),
    ("^[$]$", "$", True),
    ("^[$]$", "$\n", False),
    (r"^\d$", "5", True),
    (r"^\d$", "٥", False),
    (r"^[\d.]+$", "5.٥", False),
    (r"^\D$", "٥", True),
    (r"^[\D]$", "٥", True),
    (r"^[^\D]$", "5", True),
    (r"^\w+$", "a_9", True),
    (r"^\w+$", "é", False),
    (r"^[\w-]+$", "é", False),
    (r"^[\W]$", "é", True),
    (r"^[\W]$", "]", True),
    (r"^[\W_]+$", "^[\\]_-", True),
    (r"\bcaf\b", "café", True),
    (r"caf\B", "café", False),
    (r"^\s$", "\ufeff", True),
    (r"^\s$", "\x1c", False),
    (r"^\S$", "\x1c", True),
    (r"^[\S]$", "\u00a0", False),
    ("^.$", "\u2028", False),
    ("^.$", "\u0085", True),
    (r"^\.$", "a", False),
    ("^[.]$", "a", False),
    ("^[[]$", "[", True),
    ("^[a[]+$", "a[", True),
    ("^[^[]$", "[", False),
    ("^[]$", "a", False),
    ("^[^]$", "\n", True),
    (r"^[\]]$", "]", True),
    (r"^\p{L}+$", "é", True),
    (r"^[\p{L}\d]+$", "é5", True),
    (r"^\u{1F600}$", "\U0001f600", True),
    (r"^\u00e9$", "é", True),
    ("^(?<quote>['\"]).*\\k<quote>$", "'a'", True),
    ("^(?<quote>['\"]).*\\k<quote>$", "'a\"", False),
]


@pytest.mark.parametrize(("pattern", "text", "matches"), CASES)
def test_a_pattern_matches_as_in_ecma_262(pattern: str, text: str, matches: bool) -> None:
    assert (mismatch(text, {"type": "string", "pattern": pattern}) is None) == matches
    keys = {"patternProperties": {pattern: True}, "additionalProperties": False}
    assert (mismatch({text: 1}, keys) is None) == matches
    assert (mismatch({text: 1}, {"propertyNames": {"pattern": pattern}}) is None) == matches


@given(st.text(max_size=5), st.sampled_from(["d", "w"]))
def test_digits_and_letters_are_those_of_ascii(text: str, escape: str) -> None:
    allowed = string.digits if escape == "d" else f"{string.ascii_letters}{string.digits}_"
    everywhere = all(character in allowed for character in text)
    nowhere = not any(character in allowed for character in text)
    for small, large in ((f"\\{escape}", f"\\{escape.upper()}"), (f"[\\{escape}]", f"[\\{escape.upper()}]")):
        assert schema_pattern(f"^{small}*$").found_in(text) == everywhere
        assert schema_pattern(f"^{large}*$").found_in(text) == nowhere


@given(st.text(max_size=5))
def test_every_text_is_matched_by_itself_only(text: str) -> None:
    pattern = "^" + re.sub(r"([\^$\\.*+?()\[\]{}|/])", r"\\\1", text) + "$"
    assert schema_pattern(pattern).found_in(text)
    assert not schema_pattern(pattern).found_in(f"{text}\n")


@pytest.mark.parametrize("schema", [{"pattern": "("}, {"items": {"patternProperties": {"(": True}}}])
def test_a_broken_pattern_is_an_error_whatever_the_value(schema: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="'\\(' is not a regular expression"):
        mismatch(None, schema)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^[\w-a]+$", "a-b", "`"),
        (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a.b-c@d-e.org", "a b@d.org"),
        (r"^[\s-~]+$", " -~", "a"),
        (r"^[a-\w]+$", "a-z", "`"),
        (r"^[+-\d]$", "5", ","),
        (r"^\cJ$", "\n", "J"),
        (r"^\h\A$", "hA", " "),
    ],
)
def test_what_is_no_range_and_no_escape_stands_for_itself(pattern: str, good: str, bad: str) -> None:
    assert mismatch(good, {"pattern": pattern}) is None
    assert mismatch(bad, {"pattern": pattern}) is not None
