"""Regular expressions: what they find, and that a search ends."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault, UsageError
from vivavoce.grading.expected import read_expect
from vivavoce.grading.functions import read_options
from vivavoce.grading.graders import trajectory_match, truth_problem
from vivavoce.metrics import RuleMetric
from vivavoce.metrics.exact.arguments import ArgumentRule
from vivavoce.safe_regex import Expression, check_expression, expression, is_impossible
from vivavoce.search_process import SearchKind, search_in_process
from vivavoce.work_time import limited_work


def test_it_finds_matches_and_groups() -> None:
    dates = Expression(r"(\d+) May")
    assert dates.found_in("on 13 May")
    assert not dates.found_in("in June")
    assert dates.matches("13 May, 14 May") == ["13 May", "14 May"]
    assert dates.matches("13 May, 14 May", group=1) == ["13", "14"]


def test_a_search_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.1)
    endless = Expression("(a|aa)+$")
    for search in (endless.found_in, endless.matches):
        with pytest.raises(GraderFault, match=r"took longer than 0\.1 s") as caught:
            search("a" * 60 + "!")
        assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    "text", ["(", "(?V0)(?V1)", "(?L)(?u)", "(?a)(?u)x", r"\p{zzz}", "(?<n>a)(?<n", "[a-", "a{9,1}"]
)
def test_what_is_not_an_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a regular expression"):
        Expression(text)


@given(st.text(alphabet="()?VLuax01{},[]\\pPkg<>=!:|*+^$~#&-bB ", max_size=12))
def test_any_text_is_an_expression_or_the_users_mistake(text: str) -> None:
    with suppress(UsageError):
        assert Expression(text).found_in("aax") in (True, False)


@pytest.mark.parametrize("text", ["order \\d+", r"^\S", r".*foo.*bar", r"EUR\s*24[.,]90\s*$", r"\p{Greek}"])
def test_what_may_match_and_may_fail_is_checked_and_kept(text: str) -> None:
    assert check_expression(text) == text


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "matches every text"),
        ("^", "matches every text"),
        (r"\w*", "matches every text"),
        ("(a|aa)+$", "may backtrack catastrophically"),
        ("(x+x+)+y", "may backtrack catastrophically"),
        ("(" * 5000, "is not a regular expression"),
        ("[a", "is not a regular expression"),
    ],
)
def test_what_tells_no_texts_apart_or_explodes_is_refused(text: str, mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        check_expression(text)


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?:(?:a|b){1000}){1000}", "(((a{10}){10}){10}){101}", "a{100000000}", "[^]]{1000000}", r"\p{L}{ 1000000}"),
        *("(?#[)a{100000000}", "(?x) a # [\n b{100000000}", "(?V1)[[a]b]{100000000}", "x" * 10_001),
    ],
)
def test_a_pattern_that_would_take_all_memory_to_compile_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"at most 10,000 allowed|more than 100,000 parts"):
        Expression(pattern)


@pytest.mark.parametrize(
    "pattern",
    [r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", r"(\d{3}-){2}" * 20, "(?:a{5}){,10}", "a{99999}", "[(]{5}x{4000}"],
)
def test_counts_of_ordinary_size_are_allowed(pattern: str) -> None:
    assert Expression(pattern).text == pattern


@pytest.mark.parametrize(
    "pattern",
    ["(?R)", "a(?1)?(b)", "(?&x)(?P<x>a)", "(?P>x)(?P<x>a)", "(?r)ab", "(?:a){e<=1}", "a{e}", "(?:ab){1i+1d<3}"],
)
def test_what_only_the_library_has_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="not supported"):
        Expression(pattern)


@pytest.mark.parametrize(
    "pattern", [r"\(\?R\)", "[(?R]", "(?P<r>a)(?P=r)", "(?i:a)", "(a)?(?(1)b|c)", "a{2,3}", r"\{e\}"]
)
def test_what_looks_like_it_is_not(pattern: str) -> None:
    assert Expression(pattern)


LONG_PREPARATION = [
    ("(?i)" + "\u017f" * 9000, "S" * 9000),
    ("(?i)" + "s" * 9000, "S" * 9000),
    ("a" * 10_000, "b" * 20_000),
    ("ab" * 5000, "b" * 20_000),
]
"""Texts of patterns that the library prepares in a time that grows with the third power of their length."""
LONG_STEPS = [
    ("(?:x|y).*?(?:b" + "a" * 400 + "|c" + "a" * 400 + ")", "x" * 40_000 + "a" * 40_000),
    ("|".join(chr(0x4E00 + 2 * i) for i in range(4990)), "y" * 4_000_000),
    ("b" + "a" * 499, "a" * 40_000_000),
]
"""Searches each of whose steps compares a long text, or many characters, at each place of a text."""


@pytest.mark.parametrize(("pattern", "text"), [*LONG_PREPARATION, *LONG_STEPS])
def test_a_search_that_the_library_does_not_interrupt_ends(
    pattern: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.5)
    with pytest.raises(GraderFault) as caught:
        expression(pattern).found_in(text)
    assert caught.value.kind == "timeout"
    assert expression("a+b" * 200 + "|c").matches("xcx") == ["c"]  # the next search has a new process


SEARCH = """\
import signal
from vivavoce.safe_regex import expression

signal.signal(signal.SIGTERM, lambda *_: exit(7))
found = expression("(?i)" + "\\u017f" * 9000)
print("ready", flush=True)
found.found_in("S" * 9000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to catch")
def test_a_signal_is_handled_during_a_search_that_the_library_does_not_interrupt() -> None:
    with subprocess.Popen([sys.executable, "-c", SEARCH], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(60) == 7


@given(
    st.text("ab(|)[]{2}*+?.\\d^$ß\udc80", max_size=12),
    st.text("abdß\n \udc80", max_size=20),
    st.sampled_from(["search", "fullmatch", "finditer"]),
)
def test_a_search_in_another_process_returns_the_same(pattern: str, text: str, kind: SearchKind) -> None:
    try:
        searched = expression(pattern)
    except UsageError:
        return
    here = {"search": searched.found_in, "fullmatch": searched.fits, "finditer": searched.matches}[kind](text)
    assert search_in_process(pattern, kind, text, 0, 5.0) == here


def test_a_search_in_another_process_counts_as_work_of_its_request() -> None:
    short = expression("x")
    with limited_work(0.2):
        for _ in range(3):
            with pytest.raises(TimeoutError):
                search_in_process("a" * 10_000, "search", "b" * 20_000, 0, 0.1)
        with pytest.raises(GraderFault, match="this request takes more than"):
            short.found_in("x")


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
