"""Regular expressions that no text can match are refused, and those that some text may match are not."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.expressions import check_expression
from vivavoce.grading.expected import read_expect
from vivavoce.grading.functions import read_options
from vivavoce.grading.graders import trajectory_match, truth_problem
from vivavoce.impossible_patterns import is_impossible
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.exact.arguments import ArgumentRule

IMPOSSIBLE = """
a^ (?!) $x x$^y (?:a|b)^ a^|b$c (a)^ \\Za a\\A (?=(?!))a (?i)a^ (?:$)x a+^ (a^)+ $.+x $\\d (?:(?!)) (?:a^)?a^b x\\Z\\n
(?<!)a (?P<n>a)^ ^a^ $[a-z] (?s)$ab \\n^
""".split()  # noqa: SIM905
POSSIBLE = """
^a a$ ^$ $^ a*^ $\\n $\\s a?^b (?m)a^ (?m)$x \\bfoo\\b (^|a)b (a|^)b (?:a|$)b? a^* (?!a) [^a] a^|b (a^)?b $(?=\\n) $.
^^a$$ \\Z$ \\$x [$]x a\\^ [a^] (?i:a)b$ (?:^a|b)c x{0}^a a{0,3}^b $\\n? (?|a|b)^ (?<=a)^|x $(\\n) a$\\Z
""".split()  # noqa: SIM905


@pytest.mark.parametrize("pattern", IMPOSSIBLE)
def test_a_pattern_that_no_text_can_match_is_refused_by_every_reader(pattern: str) -> None:
    assert is_impossible(pattern)
    with pytest.raises(ValueError, match="can match no text"):
        check_expression(pattern)
    for expect in ({"regex": pattern}, {"not": {"regex": pattern}}):
        with pytest.raises(UsageError, match="can match no text"):
            read_expect(expect)
    for event in ({"assistant_says": pattern}, {"call": "a", "where": {"x": {"regex": pattern}}}):
        with pytest.raises(UsageError, match="can match no text"):
            RuleMetric(never=event)
    with pytest.raises(UsageError, match="can match no text"):
        ArgumentRule.read({"x": {"regex": pattern}})
    with pytest.raises(UsageError, match="can match no text"):
        read_options(trajectory_match, {"failed_when": pattern})
    assert "can match no text" in truth_problem("regex_match", pattern, {})


@pytest.mark.parametrize("pattern", POSSIBLE)
def test_a_pattern_that_some_text_may_match_is_not_refused_as_impossible(pattern: str) -> None:
    assert not is_impossible(pattern)


@pytest.mark.parametrize("pattern", [".*", "", "a?", "(?=)", "[^x]*"])
def test_a_pattern_that_every_text_matches_is_refused_for_an_argument(pattern: str) -> None:
    with pytest.raises(UsageError, match="matches every text"):
        ArgumentRule.read({"x": {"regex": pattern}})


@pytest.mark.parametrize("pattern", ["\bsecret\b", "a\b"])
def test_a_backspace_is_a_word_boundary_that_was_not_escaped(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"has a backspace in it; write \\\\b"):
        read_expect({"not": {"regex": pattern}})


PARTS = st.sampled_from(
    ["a", "b?", "^", "$", "(?:a|^)", "(?:b|$)", "(?!b)", "\\n", "[^a]", "a*", "|", "\\b", "(a)", "\\Z"]
)


@given(st.lists(PARTS, min_size=1, max_size=5).map("".join), st.text("ab\n", max_size=5))
def test_no_pattern_that_matches_a_text_is_called_impossible(pattern: str, text: str) -> None:
    if regex.search(pattern, text) is not None or re.search(pattern, text) is not None:
        assert not is_impossible(pattern)
