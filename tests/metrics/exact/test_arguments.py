from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vivavoce.errors import UsageError
from vivavoce.metrics.exact.arguments import ArgumentRule, Arguments, show, steps_to


def verdicts(spec: str | Mapping[str, object], actual: Arguments, arguments: Arguments) -> dict[str, bool]:
    return ArgumentRule.read(spec).verdicts(actual, arguments)


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
    arguments: Arguments = {"note": "late", "sum": 5, "name": "Mia", "code": "1", "ids": [1, 2], "gone": 1}
    actual: Arguments = {"note": "early", "sum": 6, "name": "Max", "code": "x", "ids": [1, 3], "more": None}
    assert ArgumentRule.read(spec).complaints(actual, arguments) == [
        'argument "note": wanted text at least 0.8 similar to "late", got "early"',
        'argument "sum": wanted 5 ± 0.01, got 6',
        'argument "name": wanted "Mia" in any case, got "Max"',
        'argument "code": wanted text matching /\\d+/, got "x"',
        'argument "ids": wanted [1, 2] in any order, got [1, 3]',
        'argument "gone": wanted 1, got nothing',
        'argument "more": not wanted, got null',
    ]


PLAN: Arguments = {"meta": {"uid": "x9", "lang": "de"}, "steps": [{"type": "walk", "n": 1}, {"type": "boat", "n": 2}]}


@pytest.mark.parametrize(
    ("spec", "wanted", "matches"),
    [
        ("subset", {"meta": {"lang": "de"}}, True),
        ("subset", {"meta": {"lang": "en"}}, False),
        ("subset", {"meta": {"lang": "de", "age": 1}}, False),
        ("subset", {"steps": [{"type": "walk"}, {"n": 2}]}, True),
        ("subset", {"steps": [{"type": "walk"}]}, False),
        ("exact", {**PLAN, "meta": {"lang": "de"}}, False),
        ({"meta": "subset"}, {**PLAN, "meta": {"lang": "de"}}, True),
        ({"meta.uid": "ignore"}, {**PLAN, "meta": {"lang": "de"}}, True),
        ({"meta.uid": "ignore"}, {**PLAN, "meta": {"lang": "de", "uid": "other"}}, True),
        ({"meta.uid": "ignore"}, {**PLAN, "meta": {"lang": "en"}}, False),
        ({"meta.uid": "ignore"}, {**PLAN, "meta": {"lang": "de", "more": 1}}, False),
        ({"meta.lang": "casefold"}, {**PLAN, "meta": {"lang": "DE", "uid": "x9"}}, True),
        ({"meta.lang": "casefold", "*": "ignore"}, {"meta": {"lang": "DE"}, "steps": 0}, True),
        ({"meta.lang": "casefold", "*": "ignore"}, {"meta": {"lang": "fr"}, "steps": 0}, False),
        ({"meta.uid": {"regex": "x[0-9]"}, "*": "subset"}, {"meta": {"lang": "de"}}, True),
        ({"meta.uid": {"regex": "[0-9]"}, "*": "subset"}, {"meta": {"lang": "de"}}, False),
        ({"steps.1.n": "ignore"}, {**PLAN, "steps": [{"type": "walk", "n": 1}, {"type": "boat"}]}, True),
        ({"steps.1.n": "ignore"}, {**PLAN, "steps": [{"type": "walk", "n": 3}, {"type": "boat"}]}, False),
        ({"steps.0": "ignore"}, {**PLAN, "steps": ["anything", {"type": "boat", "n": 2}]}, True),
        ("subset", {"meta.lang": "de", "steps.1.type": "boat"}, True),
        ("subset", {"meta.lang": "en"}, False),
        ("subset", {"meta.gone": "de"}, False),
        ("exact", {"meta.lang": "de", "meta.uid": "x9", "steps": PLAN["steps"]}, True),
        ("exact", {"meta.lang": "de", "steps": PLAN["steps"]}, False),
        ({"meta.lang": "casefold", "*": "subset"}, {"meta.lang": "DE"}, True),
    ],
)
def test_a_path_reaches_into_nested_arguments(
    spec: str | Mapping[str, object], wanted: Arguments, matches: bool
) -> None:
    rule = ArgumentRule.read(spec)
    assert all(rule.verdicts(PLAN, wanted).values()) is matches
    assert bool(rule.complaints(PLAN, wanted)) is not matches


def test_a_whole_argument_counts_once_however_many_paths_lead_into_it() -> None:
    spec = {"meta.lang": "casefold", "meta.uid": "ignore"}
    assert verdicts(spec, PLAN, {"meta": {"lang": "DE"}, "steps": []}) == {"meta": True, "steps": False}


def test_an_ignored_value_leaves_no_empty_object_behind() -> None:
    assert verdicts({"meta.uid": "ignore"}, {"meta": {"uid": 1}}, {}) == {}
    assert verdicts({"meta.uid": "ignore"}, {"meta": {"uid": 1}}, {"meta": {}}) == {"meta": True}
    assert verdicts({"a.b.c": "ignore"}, {"a": {"b": {"c": 1}, "d": 2}}, {"a": {"d": 2}}) == {"a": True}


def test_a_key_with_dots_counts_before_the_path() -> None:
    actual: Arguments = {"meta.uid": 1, "meta": {"uid": 2}}
    assert verdicts("subset", actual, {"meta.uid": 1}) == {"meta.uid": True}
    assert verdicts("subset", actual, {"meta.uid": 2}) == {"meta.uid": False}
    assert verdicts({"meta.uid": "ignore"}, actual, {"meta.uid": 5, "meta": {"uid": 2}}) == {"meta": True}


@pytest.mark.parametrize(
    ("spec", "unknown"),
    [
        ({"meta.uid": "ignore"}, []),
        ({"note": "ignore"}, []),
        ({"met.uid": "ignore"}, ["met.uid"]),
        ({"meta.lang.x": "ignore"}, ["meta.lang.x"]),
        ({"steps.0.n": "ignore", "steps.7": "ignore", "steps.x": "ignore"}, ["steps.x"]),
        ({"steps.9.n": "ignore"}, ["steps.9.n"]),
        ({"meta.lang": "casefold", "meta.lng": "casefold"}, ["meta.lng"]),
        ({"lang": "casefold"}, ["lang"]),
        ({"meta.uid": {"regex": "x"}, "met.uid": {"regex": "x"}}, ["met.uid"]),
        ({"tools": {"plan": {"meta.lng": "exact"}, "other": {"a.b": "exact"}}}, ["tools.plan.meta.lng"]),
        ({"a.b": "exact", "tools": {"plan": "exact"}}, []),
    ],
)
def test_a_path_that_no_expected_call_has_is_unknown(spec: Mapping[str, object], unknown: list[str]) -> None:
    arguments: Arguments = {"meta": {"lang": "de"}, "steps": [{"type": "walk"}]}
    assert ArgumentRule.read(spec).unknown_paths([("plan", arguments)]) == unknown
    assert ArgumentRule.read(spec).unknown_paths([]) == []


keys = st.sampled_from(["a", "b", "a.b", "0"])
trees = st.recursive(
    st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(keys, trees, max_size=3)
paths = st.lists(keys, min_size=1, max_size=3).map(".".join)
specs = st.sampled_from(["exact", "subset", "ignore"]) | st.dictionaries(
    paths, st.sampled_from(["exact", "subset", "ignore", "casefold", "unordered"]), max_size=3
).flatmap(lambda named: st.sampled_from(["exact", "subset", "ignore"]).map(lambda mode: {**named, "*": mode}))


@given(specs, mappings)
def test_equal_arguments_match_under_every_rule(spec: str | Mapping[str, object], arguments: dict[str, Any]) -> None:
    assert ArgumentRule.read(spec).complaints(arguments, arguments) == []


@given(mappings, mappings)
def test_exact_implies_subset_and_subset_is_met_by_more(actual: dict[str, Any], wanted: dict[str, Any]) -> None:
    exact, subset = ArgumentRule.read("exact"), ArgumentRule.read("subset")
    assert exact.complaints(actual, wanted) or not subset.complaints(actual, wanted)
    more = {**actual, "other": 1}
    assert bool(subset.complaints(more, wanted)) == bool(subset.complaints(actual, wanted))


@given(specs, mappings, mappings)
def test_a_verdict_is_false_if_and_only_if_there_is_a_complaint(
    spec: str | Mapping[str, object], actual: dict[str, Any], wanted: dict[str, Any]
) -> None:
    rule = ArgumentRule.read(spec)
    assert all(rule.verdicts(actual, wanted).values()) == (not rule.complaints(actual, wanted))


@given(mappings, paths, trees)
def test_what_is_at_an_ignored_path_never_matters(arguments: dict[str, Any], path: str, other: Any) -> None:
    steps = steps_to(arguments, path)
    assume(steps is not None)
    changed = copy.deepcopy(arguments)
    holder: Any = changed
    for step in cast("tuple[str | int, ...]", steps)[:-1]:
        holder = holder[step]
    holder[cast("tuple[str | int, ...]", steps)[-1]] = other
    assert ArgumentRule.read({path: "ignore"}).complaints(changed, arguments) == []


def test_a_complaint_about_a_nested_value_names_the_first_difference() -> None:
    arguments: Arguments = {"flights": [{"no": "A1", "date": "5"}, {"no": "A2", "date": "6"}]}
    actual: Arguments = {"flights": [{"no": "A1", "date": "5"}, {"date": "7", "no": "A2"}]}
    assert ArgumentRule().complaints(actual, arguments) == ['argument "flights"[1]["date"]: wanted "6", got "7"']


def test_a_long_value_is_shortened_and_stays_one_line() -> None:
    text = show("line\n" * 1000)
    assert len(text) == 120
    assert text.endswith("…")
    assert "\n" not in text
