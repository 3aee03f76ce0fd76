from __future__ import annotations

from collections.abc import Mapping

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.arguments import ArgumentRule, Arguments, show


def verdicts(spec: str | Mapping[str, object], actual: Arguments, wanted: Arguments) -> dict[str, bool]:
    return ArgumentRule.read(spec).verdicts(actual, wanted)


def test_exact_counts_missing_and_further_arguments() -> None:
    assert verdicts("exact", {"a": 1, "c": 3}, {"a": 1, "b": 2}) == {"a": True, "b": False, "c": False}


def test_subset_leaves_further_arguments_free() -> None:
    assert verdicts("subset", {"a": 1, "c": 3}, {"a": 1, "b": 2}) == {"a": True, "b": False}


def test_ignore_counts_nothing() -> None:
    assert verdicts("ignore", {"a": 1}, {"b": 2}) == {}


def test_named_arguments_have_their_own_matcher_and_the_rest_is_exact() -> None:
    spec = {"name": "casefold", "date": "ignore"}
    assert verdicts(spec, {"name": "MIA", "n": 1}, {"name": "Mia", "n": "1", "date": "today"}) == {
        "name": True,
        "n": False,
    }


def test_the_star_gives_the_mode_of_all_other_arguments() -> None:
    spec = {"name": "casefold", "*": "subset"}
    assert verdicts(spec, {"name": "MIA", "more": 1}, {"name": "Mia"}) == {"name": True}
    assert verdicts({"a": "exact", "*": "ignore"}, {"a": 1, "b": 1}, {"a": 1, "b": 2}) == {"a": True}


def test_a_further_named_argument_is_free_under_subset_but_a_regex_is_checked() -> None:
    spec = {"name": "casefold", "date": {"regex": r"\d+"}, "*": "subset"}
    assert verdicts(spec, {"name": "x", "date": "soon"}, {}) == {"date": False}


def test_a_regex_needs_the_argument_only_where_the_reference_has_it() -> None:
    spec = {"date": {"regex": r"\d+"}}
    assert verdicts(spec, {}, {"date": "1"}) == {"date": False}
    assert verdicts(spec, {"date": "2"}, {}) == {"date": True}
    assert verdicts(spec, {}, {}) == {}


def test_the_rule_of_a_tool_replaces_the_general_one() -> None:
    rule = ArgumentRule.read({"a": "ignore", "tools": {"book": {"b": "casefold"}, "cancel": "ignore"}})
    assert rule.for_tool("other").verdicts({"a": 1}, {}) == {}
    assert rule.for_tool("book").verdicts({"a": 1}, {}) == {"a": False}
    assert rule.for_tool("cancel").verdicts({"c": 1}, {}) == {}


def test_an_argument_called_tools_can_be_named() -> None:
    assert verdicts({"tools": "ignore"}, {"tools": 1}, {}) == {}
    rule = ArgumentRule.read({"tools": {"book": {"tools": {"tolerance": 1}}}})
    assert rule.for_tool("book").verdicts({"tools": 1}, {"tools": 2}) == {"tools": True}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("subst", "arguments: no argument mode 'subst'; did you mean 'subset'?"),
        ({"*": "fuzzy"}, "arguments.*: no argument mode 'fuzzy'"),
        ({"date": "ignored"}, "arguments.date: no matcher 'ignored'; did you mean 'ignore'?"),
        ({"tools": {"book": 7}}, "arguments.tools.book: no argument mode '7'"),
        ({"tools": {"book": {"x": "fuzzy"}}}, "arguments.tools.book.x: fuzzy needs a value"),
    ],
)
def test_a_wrong_rule_is_named_with_its_path(spec: str | Mapping[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        ArgumentRule.read(spec)
    assert str(caught.value).startswith(said)


def test_complaints_say_what_was_wanted_and_what_was_got() -> None:
    spec = {
        "note": {"fuzzy": 0.8},
        "sum": {"tolerance": 0.01},
        "name": "casefold",
        "code": {"regex": r"\d+"},
        "ids": "unordered",
    }
    wanted: Arguments = {"note": "late", "sum": 5, "name": "Mia", "code": "1", "ids": [1, 2], "gone": 1}
    actual: Arguments = {"note": "early", "sum": 6, "name": "Max", "code": "x", "ids": [1, 3], "more": None}
    assert ArgumentRule.read(spec).complaints(actual, wanted) == [
        'argument "note": wanted text at least 0.8 similar to "late", got "early"',
        'argument "sum": wanted 5 ± 0.01, got 6',
        'argument "name": wanted "Mia" in any case, got "Max"',
        'argument "code": wanted text matching /\\d+/, got "x"',
        'argument "ids": wanted [1, 2] in any order, got [1, 3]',
        'argument "gone": wanted 1, got nothing',
        'argument "more": not wanted, got null',
    ]


def test_a_complaint_about_a_nested_value_names_the_first_difference() -> None:
    wanted: Arguments = {"flights": [{"no": "A1", "date": "5"}, {"no": "A2", "date": "6"}]}
    actual: Arguments = {"flights": [{"no": "A1", "date": "5"}, {"date": "7", "no": "A2"}]}
    assert ArgumentRule().complaints(actual, wanted) == ['argument "flights"[1]["date"]: wanted "6", got "7"']


def test_a_long_value_is_shortened_and_stays_one_line() -> None:
    text = show("line\n" * 1000)
    assert len(text) == 120
    assert text.endswith("…")
    assert "\n" not in text
