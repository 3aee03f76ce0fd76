from __future__ import annotations

from typing import Any

import pytest

import vivavoce
from conversations import REFUND, Row, calls, result, says, user
from vivavoce.errors import UsageError
from vivavoce.metrics import RuleMetric, create_metric
from vivavoce.metrics.result import MetricResult


def refund(order: Any = "A-17", looked_up: Any = "A-17", found: str = "delivered", answer: str = "Yes.") -> list[Row]:
    return [
        user("I want my money back."),
        calls(("a", "look_up", {"order": looked_up})),
        result("a", found),
        says(f"Shall I refund {order}?"),
        user(answer),
        calls(("b", "refund_order", {"order": order, "amount": 40})),
        result("b", "done"),
        says(f"I refunded {order}."),
    ]


AGREED: Row = {"user_says": r"(?i)\byes\b", "within_turns": 0}
LOOKED_UP: Row = {"call": "look_up", "outcome": "succeeded", "same": "order"}
CAREFUL = RuleMetric(each={"call": "refund_order"}, only_after=[LOOKED_UP, AGREED], name="careful")


def test_a_refund_comes_only_after_the_order_was_looked_up_and_the_user_agreed() -> None:
    kept = CAREFUL.evaluate(refund())
    assert (kept.name, kept.score, kept.value, kept.passed, kept.findings) == ("careful", True, 1.0, True, ())
    assert CAREFUL.evaluate(refund(order=17, looked_up="17")).passed is True


@pytest.mark.parametrize(
    ("talk", "missing"),
    [
        (refund(looked_up="B-2"), "no call of look_up with the same order that succeeded before it"),
        (refund(found="Error: no such order"), "no call of look_up with the same order that succeeded before it"),
        (refund(answer="Wait."), r"no message of the user matching /(?i)\byes\b/ before it in the same turn"),
        (
            [user("Yes."), *refund(answer="Hm.")],
            r"no message of the user matching /(?i)\byes\b/ before it in the same turn",
        ),
    ],
)
def test_each_break_is_a_finding_with_its_place(talk: list[Row], missing: str) -> None:
    broken = CAREFUL.evaluate(talk)
    assert (broken.score, broken.value, broken.passed) == (False, 0.0, False)
    [finding] = broken.findings
    assert finding.what == f'refund_order({{"order": "A-17", "amount": 40}}): {missing}'
    assert (finding.kind, finding.verdict, finding.state) == ("rule", "broken", "fail")
    at = len(talk) - 3
    assert finding.data == {"message": at}
    turns = sum(row["role"] == "user" for row in talk[:at])
    assert finding.turn == turns - 1
    [evidence] = finding.evidence
    assert (evidence.text, evidence.kind, evidence.turn, evidence.verified) == ("c1", "call", finding.turn, True)
    assert broken.reason == f"turn {turns}: {finding.what}"


def test_calls_made_together_are_not_after_each_other() -> None:
    together = [
        user("Yes, refund A-17."),
        calls(("a", "look_up", {"order": "A-17"}), ("b", "refund_order", {"order": "A-17"})),
        result("a"),
        result("b"),
    ]
    assert [finding.what for finding in CAREFUL.evaluate(together).findings] == [
        'refund_order({"order": "A-17"}): no call of look_up with the same order that succeeded before it'
    ]


def test_a_rule_without_an_occasion_is_skipped() -> None:
    skipped = CAREFUL.evaluate([user("hi"), says("hello")])
    assert (skipped.state, skipped.reason) == ("skipped", "the rule has no occasion: no call of refund_order")
    after = RuleMetric(never={"call": "refund_order"}, after={"call": "cancel"})
    assert after.evaluate(refund()).state == "skipped"
    assert after.evaluate([user("?"), calls(("a", "cancel", {}))]).passed is True
    for other in ({"never": {"call": "x"}}, {"at_most": 1, "of": {"call": "x"}}):
        assert RuleMetric(**other).evaluate([user("hi"), says("hello")]).passed is True  # pyright: ignore[reportArgumentType]


def test_what_has_to_follow() -> None:
    follows = RuleMetric(
        each={"call": "refund_order"}, followed_by=[{"assistant_says": "refunded", "same": "order", "within_turns": 1}]
    )
    assert follows.evaluate(refund()).passed is True
    done = refund()[:-1]
    assert follows.evaluate(done).passed is False
    later = [*done, user("?"), says("refunded A-17")]
    assert follows.evaluate(later).passed is True
    assert follows.evaluate([*done, user("?"), says("hm"), user("??"), says("refunded A-17")]).passed is False
    assert follows.evaluate([*done, says("refunded B-2")]).passed is False
    [finding] = follows.evaluate(done).findings
    said = "no message of the assistant matching /refunded/ with the same order after it within 1 turn"
    assert finding.what.endswith(said)


def test_what_must_never_happen() -> None:
    secret = RuleMetric(never={"assistant_says": "pass ?word"}).evaluate([user("?"), says("The pass word is x.")])
    [finding] = secret.findings
    assert finding.what == 'assistant: "The pass word is x.": this must never happen'
    assert [(one.text, one.turn, one.verified) for one in finding.evidence] == [("pass word", 0, True)]
    large = RuleMetric(never={"call": "refund*", "where": {"amount": {"above": 30}}})
    assert large.evaluate(refund()).passed is False
    assert RuleMetric(never={"call": "refund*", "where": {"amount": {"above": 40}}}).evaluate(refund()).passed is True
    assert RuleMetric(never={"call": "refund*", "where": {"order": "A-1"}}).evaluate(refund()).passed is True
    assert (
        RuleMetric(never={"call": "refund*", "where": {"order": {"regex": "A-.*"}}}).evaluate(refund()).passed is False
    )
    assert RuleMetric(never={"call": ["x", "refund_order"]}).evaluate(refund()).passed is False
    assert RuleMetric(never={"tool_says": "done"}).evaluate(refund()).passed is False
    assert RuleMetric(never={"call": "*", "outcome": "failed"}).evaluate(refund(found="error: 404")).passed is False


def test_what_must_never_come_after() -> None:
    rule = RuleMetric(never={"call": "charge"}, after={"call": "cancel", "same": {"id": "order"}})
    cancelled = [user("cancel"), calls(("a", "cancel", {"id": 7})), result("a"), user("and?")]
    assert rule.evaluate([*cancelled, calls(("b", "charge", {"order": "7"}))]).findings[0].turn == 1
    assert rule.evaluate([*cancelled, calls(("b", "charge", {"order": "8"}))]).passed is True
    assert rule.evaluate([user("?"), calls(("b", "charge", {"order": "7"})), *cancelled]).passed is True


def test_what_every_conversation_has() -> None:
    rule = RuleMetric(always={"call": "log"})
    missing = rule.evaluate(refund())
    assert (missing.passed, missing.reason) == (False, "no call of log in the conversation")
    assert [(finding.turn, finding.evidence) for finding in missing.findings] == [(None, ())]
    assert rule.evaluate([*refund(), calls(("z", "log", {}))]).passed is True


def test_how_often_something_may_happen() -> None:
    twice = [*refund(), user("again"), calls(("c", "refund_order", {"order": "A-17"})), result("c")]
    other = [*refund(), user("again"), calls(("c", "refund_order", {"order": "B-2"})), result("c")]
    of: Row = {"call": "refund_order"}
    assert [RuleMetric(at_most=1, of=of).evaluate(one).passed for one in (refund(), twice, other)] == [
        True,
        False,
        False,
    ]
    same = RuleMetric(at_most=1, of={**of, "same": "order"})
    assert [same.evaluate(one).passed for one in (refund(), twice, other)] == [True, False, True]
    [finding] = same.evaluate(twice).findings
    assert (
        finding.what
        == 'refund_order({"order": "A-17"}): this is number 2, and at most 1 may happen with the same order'
    )
    assert finding.turn == 2
    near = RuleMetric(at_most=1, of={**of, "within_turns": 0})
    assert near.evaluate(twice).passed is True
    assert RuleMetric(at_most=1, of={**of, "within_turns": 1}).evaluate(twice).passed is False


def test_a_reason_tells_three_breaks_and_counts_the_rest() -> None:
    asked = [row for n in range(5) for row in (user("?"), calls((str(n), "refund", {"n": n})))]
    broken = RuleMetric(never={"call": "refund"}).evaluate(asked)
    assert len(broken.findings) == 5
    assert broken.reason is not None
    assert broken.reason.endswith("; and 2 more")


def test_a_call_without_readable_arguments_or_the_named_one_is_not_the_same() -> None:
    for arguments in ('["A-17"]', "{}", {"id": "A-17"}):
        talk = [*refund()[:5], calls(("b", "refund_order", arguments))]
        assert CAREFUL.evaluate(talk).passed is False
    unread = [user("?"), calls(("b", "refund_order", "[40]"))]
    assert RuleMetric(never={"call": "refund_order", "where": {"amount": 40}}).evaluate(unread).passed is False


def test_a_turn_can_be_measured_alone() -> None:
    rule = RuleMetric(each={"call": "refund_order"}, only_after=[{"call": "look_up"}], scope="turn")
    measured = rule.evaluate(refund())
    assert measured.turns is not None
    assert [(one.state, one.passed) for one in measured.turns] == [("skipped", None), ("scored", False)]
    [finding] = measured.turns[1].findings
    assert (finding.turn, finding.evidence[0].text, measured.findings) == (1, "c1", (finding,))


def test_an_expression_that_takes_too_long_is_an_error_and_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.05)
    slow = RuleMetric(never={"user_says": "(x+x+)+y"}).evaluate([user("x" * 5000), says("?")])
    assert (slow.state, slow.passed, slow.failure and slow.failure.kind) == ("error", None, "timeout")


def test_the_rule_is_part_of_the_fingerprint() -> None:
    assert (
        CAREFUL.fingerprint
        == RuleMetric(each={"call": "refund_order"}, only_after=[LOOKED_UP, AGREED], name="careful").fingerprint
    )
    assert (
        CAREFUL.fingerprint
        != RuleMetric(each={"call": "refund_order"}, only_after=[LOOKED_UP], name="careful").fingerprint
    )


def test_it_can_be_made_by_name_and_measure_many(tmp_path: Any) -> None:
    metric = create_metric("rule", never={"call": "refund_order"}, name="no-refund")
    rows: list[Row] = [{"id": "a", "messages": refund()}, {"id": "b", "messages": refund()[:5]}]
    summary = vivavoce.evaluate(rows, [metric, CAREFUL], store=str(tmp_path / "store.db")).summary
    assert [(grader.name, grader.scored, grader.mean) for grader in summary.graders] == [
        ("no-refund", 2, 0.5),
        ("careful", 1, 1.0),
    ]
    with pytest.raises(UsageError, match=r"metric 'rule': never\.wher"):
        create_metric("rule", never={"wher": 1})


def test_an_empty_conversation_is_skipped() -> None:
    empty: MetricResult = CAREFUL.evaluate([])
    assert empty.state == "skipped"


def test_a_path_leads_into_an_argument() -> None:
    def booked(*ids: Any) -> list[Row]:
        bookings = [
            calls((f"b{n}", "book", {"order": {"id": one, "lines": [{"sku": one}]}})) for n, one in enumerate(ids)
        ]
        return [user("?"), *bookings]

    assert not RuleMetric(never={"call": "book", "where": {"order.id": "A-17"}}).evaluate(booked("A-17")).passed
    assert RuleMetric(never={"call": "book", "where": {"order.id": "A-17"}}).evaluate(booked("A-18")).passed
    assert (
        not RuleMetric(never={"call": "book", "where": {"order.lines.0.sku": {"above": 5}}}).evaluate(booked(6)).passed
    )
    once = RuleMetric(at_most=1, of={"call": "book", "same": "order.id"})
    assert once.evaluate(booked(1, 2)).passed
    assert not once.evaluate(booked(1, "1")).passed


def test_what_must_never_come_after_does_not_come_in_the_same_message_either() -> None:
    rule = RuleMetric(never={"call": "refund_order"}, after={"call": "cancel"})
    both = [user("?"), calls(("a", "cancel", {}), ("b", "refund_order", {})), result("a"), result("b")]
    assert not rule.evaluate(both).passed
    assert rule.evaluate(
        [user("?"), calls(("b", "refund_order", {}), ("a", "cancel", {})), result("b"), result("a")]
    ).passed
    words = RuleMetric(never={"call": "refund_order"}, after={"assistant_says": "cannot"})
    assert not words.evaluate([user("?"), {**calls(("b", "refund_order", {})), "content": "I cannot."}]).passed


BROKEN: Row = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "b", "type": "function", "function": {"name": "refund_order", "arguments": '{"order": '}}],
}


@pytest.mark.parametrize(
    "rule",
    [
        RuleMetric(never={"call": "refund_order", "where": {"amount": {"above": 100}}}),
        RuleMetric(each={"call": "refund_order", "where": {"order": "A-17"}}, only_after=[{"user_says": "please"}]),
        RuleMetric(at_most=1, of={"call": "refund_order", "where": {"order": "A-17"}}),
        RuleMetric(always={"call": "refund_order", "where": {"order": "A-17"}}),
    ],
)
def test_arguments_that_are_no_object_are_taken_for_the_worst(rule: RuleMetric) -> None:
    assert rule.evaluate([user("My money back!"), BROKEN, BROKEN]).passed is False


NEVER_ABOVE = RuleMetric(never={"call": "refund", "where": {"amount": {"above": 100}}})


@pytest.mark.parametrize("amount", [150, "150", "1,500", "EUR 150.00", "1.500", "all", None, [150], "1 of 200", "1e3"])
def test_what_must_not_be_above_a_limit_may_be_written_as_text(amount: Any) -> None:
    assert NEVER_ABOVE.evaluate([user("?"), calls(("b", "refund", {"amount": amount}))]).passed is False


def test_what_must_not_be_above_a_limit_is_not_nan() -> None:
    assert NEVER_ABOVE.evaluate([user("?"), calls(("b", "refund", '{"amount": NaN}'))]).passed is False


@pytest.mark.parametrize("amount", [100, "100", "99.99", "EUR 50", "-150", "1,5"])
def test_an_amount_below_the_limit_keeps_the_rule(amount: Any) -> None:
    assert NEVER_ABOVE.evaluate([user("?"), calls(("b", "refund", {"amount": amount}))]).passed is True


def test_what_must_happen_has_to_be_sure() -> None:
    rule = RuleMetric(always={"call": "refund", "where": {"amount": {"above": 100}}})
    passed = [
        rule.evaluate([user("?"), calls(("b", "refund", {"amount": amount}))]).passed for amount in ("150", "all")
    ]
    assert passed == [True, False]


def test_a_forbidden_value_is_forbidden_as_number_and_as_text() -> None:
    for where in ({"order": 1042}, {"order": {"regex": "10.."}}):
        rule = RuleMetric(never={"call": "refund", "where": where})
        assert [rule.evaluate([user("?"), calls(("b", "refund", {"order": o}))]).passed for o in (1042, "1042", 7)] == [
            False,
            False,
            True,
        ]
    assert (
        RuleMetric(always={"call": "refund", "where": {"order": 1042}})
        .evaluate([user("?"), calls(("b", "refund", {"order": "1042"}))])
        .passed
        is False
    )


def test_an_argument_that_nobody_can_read_may_be_that_of_any_other_call() -> None:
    rule = RuleMetric(at_most=1, of={"call": "refund_order", "same": "order"})
    once = calls(("a", "refund_order", {"order": "A-17"}))
    assert rule.evaluate([user("?"), once, BROKEN]).passed is False
    assert rule.evaluate([user("?"), BROKEN, once]).passed is False
    assert rule.evaluate([user("?"), BROKEN]).passed is True
    assert rule.evaluate([user("?"), once, calls(("c", "refund_order", {"order": "B-2"}))]).passed is True
    after = RuleMetric(never={"call": "refund_order"}, after={"call": "cancel", "same": "order"})
    assert after.evaluate([user("?"), calls(("c", "cancel", {"order": "A-17"})), BROKEN]).passed is False


@pytest.mark.parametrize(
    ("rule", "passed"),
    [
        (RuleMetric(each={"assistant_says": "refunded"}, only_after=[{"call": "refund_order"}]), False),
        (RuleMetric(each={"call": "refund_order"}, followed_by=[{"assistant_says": "refunded"}]), True),
        (RuleMetric(always={"call": "refund_order"}), False),
        (RuleMetric(never={"call": "refund_order"}), False),
        (RuleMetric(never={"assistant_says": "refunded"}, after={"call": "refund_order"}), False),
    ],
)
def test_a_call_that_was_only_tried_breaks_rules_and_keeps_none(rule: RuleMetric, passed: bool) -> None:
    refused: Row = {**result("b", "Error: the user refused this call"), "metadata": {"answered_by": "user"}}
    talk = [user("My money back!"), calls(("b", "refund_order", {"order": "A-17"})), refused, says("I refunded A-17.")]
    assert rule.evaluate(talk).passed is passed


@pytest.mark.parametrize(
    ("rule", "talk", "reason"),
    [
        ({"never": {"assistant_says": "fool"}}, [user("Hi."), says("")], "the assistant says nothing"),
        ({"never": {"call": "refund"}}, [user("Hi."), says("")], "the assistant does nothing at all"),
        ({"at_most": 1, "of": {"assistant_says": "sorry"}}, [user("Hi.")], "the assistant says nothing"),
    ],
)
def test_an_assistant_that_does_nothing_keeps_no_rule(rule: dict[str, Any], talk: list[Row], reason: str) -> None:
    skipped = RuleMetric(**rule).evaluate(talk)
    assert (skipped.state, skipped.reason) == ("skipped", f"the rule has no occasion: {reason}")
    assert RuleMetric(never={"user_says": "fool"}).evaluate(talk).passed
    assert RuleMetric(**rule).evaluate([*talk, says("Hello.")]).passed


def test_a_rule_may_name_an_agent_and_a_handoff() -> None:
    silent = RuleMetric(never={"assistant_says": r"\S", "agent": "Triage"}, after={"handoff": "refunds"})
    found = silent.evaluate(REFUND)
    assert (found.passed, [(finding.turn, finding.data) for finding in found.findings]) == (
        False,
        [(0, {"message": 7, "agent": "triage"})],
    )
    assert RuleMetric(never={"call": "refund_order", "agent": "billing"}).evaluate(REFUND).passed is True
    own = RuleMetric(never={"call": "refund_order", "agent": "triage"}).evaluate(REFUND)
    assert [(finding.evidence[0].text, finding.data["message"]) for finding in own.findings] == [("c2", 5)]
    once = RuleMetric(at_most=1, of={"handoff": "refunds", "agent": "triage"}).evaluate(REFUND)
    assert [(finding.what.partition(":")[0], finding.evidence) for finding in once.findings] == [
        ("handoff to refunds", ())
    ]
    back = RuleMetric(never={"handoff": ["triage", "human"]}).evaluate(REFUND)
    assert [finding.evidence[0].text for finding in back.findings] == ["c1"]


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ({"user_says": "x", "agent": "a"}, "agent cannot be used with user_says"),
        ({"handoff": "a", "call": "b"}, "got call and handoff"),
        ({"handoff": "a", "outcome": "failed"}, "handoff has neither arguments nor a result"),
        ({"handoff": "a", "agent": ""}, "at least 1 character"),
    ],
)
def test_what_agents_do_is_written_in_one_way(event: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        RuleMetric(never=event)
