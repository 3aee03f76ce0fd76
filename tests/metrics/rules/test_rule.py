from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.metrics.rules.rule import read_rule

A: dict[str, Any] = {"call": "a"}
B: dict[str, Any] = {"call": "b"}


@pytest.mark.parametrize(
    ("rule", "mistake"),
    [
        ({}, "a rule needs one of each, never, always, at_most"),
        ({"never": A, "always": B}, "a rule needs one of .*, got never and always"),
        ({"each": A}, "each needs only_after"),
        ({"each": A, "only_after": []}, "each needs only_after"),
        ({"never": A, "only_after": [B]}, "only_after goes with each, not with never"),
        ({"always": A, "of": B}, "of goes with at_most, not with always"),
        ({"at_most": 1}, "at_most needs of"),
        ({"at_most": 0, "of": A}, "at_most: .* greater than or equal to 1"),
        ({"at_most": True, "of": A}, "at_most: must be a number, got true"),
        (
            {"never": A, "after": {"call": "b", "within_turns": False}},
            "after.within_turns: must be a number, got false",
        ),
        ({"each": A, "only_after": [A]}, "only_after.0: the first such event can never have one before it"),
        (
            {"each": {"call": "a", "same": "x"}, "only_after": [B]},
            "each: same has nothing to compare with; write it in",
        ),
        ({"always": {"call": "a", "within_turns": 1}}, "always: within_turns has nothing to compare with$"),
        ({"each": {"user_says": "x"}, "followed_by": [{"call": "b", "same": "x"}]}, "followed_by.0: same needs a call"),
        ({"at_most": 1, "of": {"user_says": "x", "same": "y"}}, "of: same needs the names of arguments"),
        ({"never": {}}, "never: an event is one of call, user_says"),
        ({"never": {"call": "a", "user_says": "x"}}, "never: an event is one of .*, got call and user_says"),
        ({"never": {"user_says": "x", "where": {"y": 1}}}, "never: where is for a call"),
        ({"never": {"user_says": "x", "outcome": "failed"}}, "never: outcome is for a call"),
        ({"never": A, "after": {"user_says": "x", "same": {"y": "z"}}}, "after: a message has no arguments"),
        ({"never": {"call": ""}}, "never.call"),
        ({"never": {"call": []}}, "never.call"),
        ({"never": {"user_says": "("}}, r"never.user_says: '\(' is not a regular expression"),
        ({"never": {"assistant_says": "a*"}}, r"never.assistant_says: /a\*/ matches an empty text too"),
        ({"never": {"assistant_says": "^$"}}, r"never.assistant_says: /\^\$/ matches an empty text too"),
        ({"never": {"assistant_says": "a^"}}, r"never.assistant_says: /a\^/ can match no text"),
        ({"never": {"assistant_says": "\bsecret\b"}}, "has a backspace in it"),
        ({"never": {"call": "a", "where": {"x": {"regex": "(?!)"}}}}, r"/\(\?!\)/ can match no text"),
        ({"never": {"call": "a", "where": {}}}, "never.where: is empty; remove it"),
        ({"never": {"call": "a", "where": {"x": None}}}, "never.where: x needs a value"),
        ({"never": {"call": "a", "where": {"x": {}}}}, "never.where: x needs a value"),
        ({"never": {"call": "a", "where": {"x": {"over": 1}}}}, "x: no condition 'over'"),
        ({"never": {"call": "a", "where": {"x": {"above": "1"}}}}, "x: above needs a number, got '1'"),
        ({"never": {"call": "a", "where": {"x": {"below": float("nan")}}}}, "x: below needs a number, got nan"),
        ({"never": {"call": "a", "where": {"x": {"above": 2, "below": 1}}}}, "x: no number is above 2 and below 1"),
        ({"never": {"call": "a", "where": {"x": {"regex": 1}}}}, "x: regex needs a text, got 1"),
        ({"never": {"call": "a", "same": [1]}}, "never.same"),
        ({"never": {"call": "a", "within": 1}}, "never.within: unknown key; did you mean 'within_turns'"),
        ({"never": "a"}, "never: must be an event such as {call: refund}$"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(rule: dict[str, Any], mistake: str) -> None:
    with pytest.raises(UsageError, match=mistake):
        read_rule(rule)


def test_a_rule_reads_what_it_wrote() -> None:
    events: dict[str, Any] = {"only_after": [{"call": ["b", "c*"], "same": {"id": "order"}}], "followed_by": [B]}
    rule = read_rule({"each": {"call": "a", "where": {"x": {"above": 1}}}, **events})
    assert read_rule(rule.model_dump(mode="json")) == rule
    assert [(name, index) for name, index, _ in rule.events] == [("each", None), ("only_after", 0), ("followed_by", 0)]
