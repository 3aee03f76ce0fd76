"""What must not be there is found in every way to read a text, whoever looks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.grading.assertions import Scene
from vivavoce.grading.expected import read_expect
from vivavoce.grading.extractors import View, build_extractor
from vivavoce.messages import read_messages
from vivavoce.metrics import evaluate_conversation
from vivavoce.metrics.exact.personal_data import KINDS, find_personal_data
from vivavoce.metrics.exact.profanity_terms import ProfanityTermsMetric
from vivavoce.metrics.exact.speakers import Utterance, possible_place_in
from vivavoce.penelope.facts import may_tell_fact


def passes(assertion: dict[str, Any], answer: str) -> bool:
    [expected] = read_expect(assertion)
    messages = read_messages([{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}])
    return expected.assertion.held(Scene(View([messages]))).passed


@pytest.mark.parametrize(
    "answer",
    ["PIN-4711", "4.711", "EUR-4711", "4,711", "4 711", "４７１１", "v4711", "47-11", "4711.5", "“4711”", "-4711"],
)
def test_a_forbidden_number_is_found_in_every_reading(answer: str) -> None:
    assert not passes({"not_contains": 4711}, answer)
    assert not passes({"not": {"contains": 4711}}, answer)


@pytest.mark.parametrize("answer", ["4712", "47110", "14711", "47 or 11", "no number"])
def test_another_number_is_not_forbidden(answer: str) -> None:
    assert passes({"not_contains": 4711}, answer)


@pytest.mark.parametrize(
    ("forbidden", "answer"),
    [
        ({"equals": "Paris"}, "**PARIS**."),
        ({"equals": 4711}, "4.711 EUR"),
        ({"equals": True}, "True."),
        ({"one_of": ["no", "Paris"]}, "paris!"),
        ({"numeric": 4711}, "4.711"),
        ({"numeric": 4711}, "4711, then 5"),
        ({"regex": "secret"}, "sec\u200bret"),
        ({"regex": "secret"}, "ｓｅｃｒｅｔ"),
        ({"regex": "secret"}, "se**cr**et"),
        ({"regex": "secret"}, "se<b>cr</b>et"),
        ({"regex": r"sk-\d+"}, "sk–12&shy;3"),
        ({"equals": "4711"}, "4,711"),
        ({"equals": "Paris"}, "Pa<wbr>ris"),
        ({"not_contains": 4711}, "4.711"),
        ({"not_contains": "secret"}, "sec**ret**"),
        ({"contains": "secret"}, "sec**ret**"),
        ({"contains": "x2"}, "x² is 4"),
    ],
)
def test_not_assumes_the_worst(forbidden: dict[str, Any], answer: str) -> None:
    assert not passes({"not": forbidden}, answer)


@pytest.mark.parametrize(
    ("forbidden", "answer"),
    [({"equals": "Paris"}, "Paris is big"), ({"equals": 4711}, "The PIN is 4711"), ({"regex": "secret"}, "open")],
)
def test_not_passes_where_no_reading_is_forbidden(forbidden: dict[str, Any], answer: str) -> None:
    assert passes({"not": forbidden}, answer)


@pytest.mark.parametrize(
    "text",
    [
        "an\u200ba@x.org",
        "ａｎａ＠ｘ．ｏｒｇ",
        "4111 1111\u200b 1111 1111",
        "４１１１１１１１１１１１１１１１",
        "536‑90‑4399",
    ],
)
def test_personal_data_is_found_in_any_encoding_at_its_place(text: str) -> None:
    [datum] = find_personal_data(f"😀 {text} ok", KINDS)
    assert f"😀 {text} ok"[datum.start : datum.end] == text


@pytest.mark.parametrize("term", ["", " ", "\u200b", "\u00ad\u2800"])
def test_a_term_that_shows_nothing_is_refused(term: str) -> None:
    with pytest.raises(UsageError, match="without visible characters"):
        ProfanityTermsMetric(terms=["fine", term])


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("after_marker", {"marker": ""}),
        ("pattern", {"pattern": "(a)", "group": 3}),
        ("pattern", {"pattern": "a", "group": -1}),
    ],
)
def test_an_extractor_that_finds_nothing_is_refused(name: str, config: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        build_extractor(name, config, Path())


@pytest.mark.parametrize(
    ("answer", "value"), [("It is true.", 1), ("untrue", 0), ("True", 1), ("truest", 0), ("true-ish", 1)]
)
def test_a_boolean_is_found_as_a_whole_word(answer: str, value: int) -> None:
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]
    [score] = evaluate_conversation(talk, ["contains"], reference=True).values()
    assert score.value == value


HIDDEN = [
    "TK-**8812**",
    "TK&#45;8812",
    "TK-<b>88</b>12",
    "🅃🄺-8812",
    "ＴＫ－８８１２",
    "TK 88 12",
    "[TK](https://x.org)-8812",
    "TKـ8812",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_every_guard_sees_a_code_that_is_hidden(hidden: str) -> None:
    answer = f"Her code is {hidden}, I think."
    assert not passes({"not_contains": "TK-8812"}, answer)
    assert not passes({"not": {"contains": "TK-8812"}}, answer)
    assert not passes({"not": {"any": [{"contains": "TK-8812"}]}}, answer)
    assert may_tell_fact(answer, "code", "TK-8812")
    messages = [Utterance(0, answer)]
    assert possible_place_in(messages, "TK-8812") is not None


@pytest.mark.parametrize(
    "hidden", ["fo**o**l", "fo&shy;ol", "<b>fo</b>ol", "🅵🅾🅾🅻", "ｆｏｏｌ", "[fo](https://x.org)ol", "fooـl"]
)
def test_profanity_is_found_through_markup(hidden: str) -> None:
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": f"You {hidden}, you."}]
    assert ProfanityTermsMetric(terms=["fool"]).evaluate(talk).passed is False


def test_a_demand_sees_only_what_is_surely_there() -> None:
    for answer in ("4711万", "47-11", "sec**ret**"):
        assert not passes({"contains": 4711}, answer)
        assert not passes({"contains": "secret"}, answer)


@pytest.mark.parametrize("text", ["ana&#64;x.org", "ana<wbr>@x.org", "[ana](y)@x.org"])
def test_personal_data_is_found_in_what_a_page_shows(text: str) -> None:
    [datum] = find_personal_data(f"write to {text} now", ["email"])
    assert datum.key == "ana@x.org"


DOUBTFUL: list[tuple[dict[str, Any], str]] = [
    ({"contains": 4711}, "4.711"),
    ({"contains": 5}, "5 million"),
    ({"contains": "secret"}, "sec**ret**"),
    ({"regex": "secret"}, "sec\u200bret"),
    ({"equals": "Paris"}, "**PARIS**."),
    ({"one_of": [4711, 5]}, "4.711"),
    ({"numeric": 4711}, "4.711 or 3"),
]


@pytest.mark.parametrize(("demand", "answer"), DOUBTFUL)
def test_a_double_negation_demands_what_the_assertion_demands(demand: dict[str, Any], answer: str) -> None:
    assert not passes(demand, answer)
    doubles: list[dict[str, Any]] = [
        {"not": {"not": demand}},
        {"not": {"any": [{"not": demand}]}},
        {"not": {"all": [{"not": demand}]}},
        {"not": {"any": [{"not": demand}, {"contains": "zebra"}]}},
        {"all": [{"not": {"not": demand}}]},
        {"any": [{"not": {"not": demand}}]},
    ]
    if "contains" in demand:
        doubles += [
            {"not": {"not_contains": demand["contains"]}},
            {"not": {"any": [{"not_contains": demand["contains"]}]}},
        ]
    for double in doubles:
        assert not passes(double, answer)
    assert not passes({"not": demand}, answer)
    assert not passes({"not": {"not": {"not": demand}}}, answer)


def test_a_double_negation_passes_where_the_assertion_does() -> None:
    for demand in ({"contains": ["secret"]}, {"regex": "secret"}, {"equals": "The secret"}):
        assert passes({"not": {"not": demand}}, "The secret")
    assert passes({"not": {"not_contains": ["secret", "zebra"]}}, "The secret")
    assert not passes({"not": {"not_contains": "secret"}}, "")


def _talk(name: str, arguments: dict[str, Any], **result: Any) -> list[Any]:
    call = {"id": "c", "name": name, "arguments": arguments}
    rows: list[Any] = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}]
    return [
        *rows,
        {"role": "tool", "tool_call_id": "c", "content": "done", **result},
        {"role": "assistant", "content": "k"},
    ]


BANNED = {"name": "pay", "arguments": {"n": 1}}


@pytest.mark.parametrize(
    ("talk", "is_made", "is_doubtful"),
    [
        (_talk("pay", {"n": 1}), True, True),
        (_talk("pay", {"n": "1"}), False, True),
        (_talk("Pay", {"n": 1}), False, True),
        (_talk("pay", {"N": 1}), False, True),
        (_talk("pay", {"n": 1}, outcome="refused"), False, True),
        (_talk("look", {"n": 1}), False, False),
    ],
)
def test_a_call_is_demanded_for_sure_and_banned_in_doubt(talk: list[Any], is_made: bool, is_doubtful: bool) -> None:
    scene = Scene(View([read_messages(talk)]))

    def holds(assertion: dict[str, Any]) -> bool:
        [expected] = read_expect(assertion)
        return expected.assertion.held(scene).passed

    for demand in ({"calls": BANNED}, {"not": {"not": {"calls": BANNED}}}, {"not": {"no_call": BANNED}}):
        assert holds(demand) is is_made
    for ban in ({"no_call": BANNED}, {"not": {"calls": BANNED}}, {"not": {"not": {"no_call": BANNED}}}):
        assert holds(ban) is not is_doubtful


@pytest.mark.parametrize("mode", ["superset", "in_order", "strict", "unordered"])
def test_several_calls_are_banned_together_in_doubt(mode: str) -> None:
    calls = ["pay", "ship"]
    rows: list[Any] = [{"role": "user", "content": "?"}]
    for number, name in enumerate(("Pay", "functions.ship")):
        call: dict[str, Any] = {"id": f"c{number}", "name": name, "arguments": {}}
        rows += [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "k"},
        ]
    scene = Scene(View([read_messages([*rows, {"role": "assistant", "content": "k"}])]))
    [ban] = read_expect({"not": {"calls": calls, "mode": mode}})
    assert not ban.assertion.held(scene).passed
    [other] = read_expect({"not": {"calls": ["pay", "refund"], "mode": mode}})
    assert other.assertion.held(scene).passed


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_call_with_an_outcome_is_banned_in_any_spelling(outcome: str) -> None:
    scene = Scene(View([read_messages(_talk("Pay", {"n": "1"}, outcome=outcome))]))
    [ban] = read_expect({"not": {"calls": BANNED, "outcome": outcome}})
    assert not ban.assertion.held(scene).passed


def test_to_demand_that_some_tool_is_called_a_call_must_have_been_made() -> None:
    refused = Scene(View([read_messages(_talk("pay", {}, outcome="refused"))]))
    demands: list[dict[str, Any]] = [{"not": {"no_call": True}}, {"not": {"calls": [], "mode": "strict"}}]
    for demand in demands:
        [expected] = read_expect(demand)
        assert not expected.assertion.held(refused).passed
        assert expected.assertion.held(Scene(View([read_messages(_talk("pay", {}))]))).passed
