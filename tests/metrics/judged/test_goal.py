from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import ModelFault, UsageError
from vivavoce.metrics.judged.goal import GoalAchievementJudge
from vivavoce.metrics.judged.goal_reply import Asked, GoalReply
from vivavoce.metrics.question import Question, Verdict
from vivavoce.models.model import ModelReply, Request
from vivavoce.records.score import Usage
from vivavoce.testing import ScriptedModel
from vivavoce.testing.scripted import Scripted

CONVERSATION = [
    {"role": "user", "content": "Cancel order 7, please."},
    {"role": "assistant", "tool_calls": [{"id": "x", "name": "cancel", "arguments": {"order": 7}}]},
    {"role": "tool", "tool_call_id": "x", "content": "cancelled"},
    {"role": "assistant", "content": "Order 7 is cancelled."},
    {"role": "user", "content": "And the refund?"},
    {"role": "assistant", "content": "In five days."},
]
GOAL = "Order 7 is cancelled and the user knows when the refund comes."


def criterion(outcome: str, met: bool, *evidence: str) -> dict[str, Any]:
    return {"outcome": outcome, "kind": "fact", "evidence": list(evidence), "met": met}


def verdict(*criteria: dict[str, Any], change: str = "wanted", **more: Any) -> dict[str, Any]:
    changes = [{"call": "c0", "asked": "cancel 7", "rule": "", "verdict": change}]
    answer = {
        "criteria": list(criteria),
        "changes": changes,
        "breaches": [],
        "reasoning": "So it is.",
        "confidence": 0.8,
    }
    return {**answer, **more}


def ruled(*happened: str, **more: Any) -> dict[str, Any]:
    rules = [{"rule": i, "evidence": ["c0"], "happened": one} for i, one in enumerate(happened, 1)]
    answer = {name: value for name, value in verdict().items() if name != "criteria"}
    return {**answer, "rules": rules, **more}


BOTH = (criterion("cancelled", True, "c0"), criterion("refund told", True, "In five days."))
ONE = (criterion("cancelled", True, "c0"), criterion("refund told", False))
INVENTED = (criterion("cancelled", True, "c0"), criterion("refund told", True, "Your refund is on its way."))
DENIED = (criterion("cancelled", True, "c0"), criterion("refund told", False))
BREACH = [{"what": "cancelled order 8 too", "evidence": ["c5"]}]


@pytest.mark.parametrize(
    ("reply", "level", "passed"),
    [
        (verdict(*BOTH), "fully_achieved", True),
        (verdict(*BOTH, achievement_level="not_achieved"), "fully_achieved", True),
        (verdict(*BOTH, change="undone"), "fully_achieved", True),
        (verdict(*BOTH, breaches=BREACH), "fully_achieved", True),
        (verdict(*ONE), "partially_achieved", False),
        (verdict(*BOTH, change="not_wanted"), "partially_achieved", False),
        (verdict(*BOTH, change="wrong_value"), "partially_achieved", False),
        (verdict(*BOTH, change="forbidden"), "partially_achieved", False),
        (verdict(criterion("cancelled", False)), "not_achieved", False),
    ],
)
def test_the_level_is_computed_and_never_taken_from_the_model(reply: dict[str, Any], level: str, passed: bool) -> None:
    result = GoalAchievementJudge(model=ScriptedModel([reply])).evaluate(CONVERSATION, goal=GOAL)
    assert (result.score, result.passed) == (level, passed)


def test_calls_and_quotes_are_looked_up_and_what_is_missing_is_named() -> None:
    reply = verdict(*ONE, breaches=BREACH)
    result = GoalAchievementJudge(model=ScriptedModel([reply])).evaluate(CONVERSATION, goal=GOAL)
    assert [(one.text, one.kind, one.turn, one.verified) for one in result.evidence] == [
        ("c0", "call", 0, True),
        ("c5", "call", None, False),
    ]
    assert result.details["missing_criteria"] == ["refund told"]
    others = [
        (finding.kind, finding.what, finding.state, finding.turn)
        for finding in result.findings
        if finding.kind != "criterion"
    ]
    assert others == [("change", "c0: cancel", "pass", 0), ("breach", "cancelled order 8 too", "partial", None)]


def test_outcomes_that_are_given_keep_our_words_whatever_the_judge_calls_them() -> None:
    reply = ruled("yes", "yes")
    judge = ScriptedModel([reply])
    result = GoalAchievementJudge(model=judge).evaluate(
        CONVERSATION, goal=GOAL, outcomes=("order 7 cancelled",), must_not=("order 8 cancelled",)
    )
    assert result.details["missing_criteria"] == ["order 8 cancelled"]
    asked = judge.requests[0].messages[-1].text
    assert '1. "order 7 cancelled"\n' in asked
    assert '2. "order 8 cancelled"\n' in asked
    assert "criteria:" not in asked


@pytest.mark.parametrize(
    "wrong",
    [
        ruled("yes", "yes", achievement_level="splendid"),
        ruled("yes"),
        ruled("yes", "perhaps"),
        ruled("yes", "yes", "yes"),
        ruled("yes", "yes", rules=[{"rule": 1, "evidence": [], "happened": "yes"}] * 2),
        ruled("yes", "yes", confidence=1.5),
        ruled("yes", "yes", bonus=1),
        ruled("yes", "yes", changes=[]),
        verdict(*BOTH),
        {},
    ],
)
def test_a_verdict_of_another_shape_is_an_error(wrong: dict[str, Any]) -> None:
    judge = GoalAchievementJudge(model=ScriptedModel([wrong]))
    result = judge.evaluate(CONVERSATION, goal=GOAL, outcomes=("one", "two"))
    assert (result.score, result.state, result.passed) == ("error", "error", None)


def test_without_a_goal_there_is_nothing_to_judge() -> None:
    result = GoalAchievementJudge(model=ScriptedModel([])).evaluate(CONVERSATION)
    assert (result.state, result.reasoning) == ("skipped", "needs a goal, and none is given")


def test_where_there_is_no_turn_to_judge_by_itself_it_is_skipped() -> None:
    judge = GoalAchievementJudge(model=ScriptedModel([]), scope="turn")
    assert judge.evaluate([{"role": "assistant", "content": "Hello?"}], goal=GOAL).state == "skipped"


def test_in_pieces_the_outcomes_of_the_first_hold_for_all_and_one_that_shows_them_is_enough() -> None:
    later = ruled("no", "yes")
    del later["changes"]
    judge = ScriptedModel([verdict(*ONE), later])
    result = GoalAchievementJudge(model=judge, tokens=30, overlap=0).evaluate(CONVERSATION, goal=GOAL)
    assert (result.score, len(result.details["pieces"])) == ("fully_achieved", 2)
    assert '1. "cancelled"\n2. "refund told"\n' in judge.requests[1].messages[-1].text


@pytest.mark.parametrize(("met", "later"), [(False, "yes"), (True, "no")])
def test_in_pieces_what_was_to_be_refused_and_once_was_not_was_not_refused(met: bool, later: str) -> None:
    refused = {**criterion("no refund", met), "kind": "refusal"}

    def reply(request: Request) -> dict[str, Any]:
        return fitting(request, ruled(later) if asked_of(request).rules else verdict(refused))

    judge = GoalAchievementJudge(model=ScriptedModel(reply), tokens=20)
    assert judge.evaluate(CONVERSATION, goal=GOAL).score == "not_achieved"


@given(
    met=st.lists(st.booleans(), min_size=1, max_size=8),
    violated=st.booleans(),
    names=st.integers(2, 6).map(lambda count: [f"level{i}" for i in range(count)]),
    data=st.data(),
)
def test_a_level_passes_only_when_everything_is_met_and_nothing_violated(
    met: list[bool], violated: bool, names: list[str], data: st.DataObject
) -> None:
    passing = data.draw(st.sets(st.sampled_from(names[1:]), min_size=1).map(sorted))
    said = data.draw(st.sampled_from(names))
    judge = GoalAchievementJudge(categories=names, passing_categories=passing)
    level = judge.level(sum(met) / len(met), violated, said)
    lowest = min(names.index(name) for name in passing)
    assert (names.index(level) >= lowest) == (all(met) and not violated)


@pytest.mark.parametrize(
    ("categories", "passing"), [(["a"], "a"), (["a", "a"], "a"), (["a", "b"], "c"), (["a", "b"], [])]
)
def test_levels_that_make_no_sense_are_refused(categories: list[str], passing: str | list[str]) -> None:
    with pytest.raises(UsageError, match="categories"):
        GoalAchievementJudge(categories=categories, passing_categories=passing)


@pytest.mark.parametrize(
    ("met", "kept", "score"),
    [
        ([True, True], True, "fully_achieved"),
        ([True, True], False, "partially_achieved"),
        ([True, False], True, "partially_achieved"),
        ([False, False], True, "not_achieved"),
        ([False, False], False, "not_achieved"),
    ],
)
def test_what_must_not_happen_and_does_not_achieves_nothing(met: list[bool], kept: bool, score: str) -> None:
    reply = ruled(*("yes" if one else "no" for one in [*met, not kept]))
    judge = GoalAchievementJudge(model=ScriptedModel([reply]))
    assert judge.evaluate(CONVERSATION, goal=GOAL, outcomes=("a", "b"), must_not=("c",)).score == score


@pytest.mark.parametrize(
    ("happened", "change", "score"),
    [("no", "wanted", "skipped"), ("yes", "wanted", "not_achieved"), ("no", "not_wanted", "not_achieved")],
)
def test_without_an_occasion_for_an_outcome_what_was_spoilt_still_counts(
    happened: str, change: str, score: str
) -> None:
    reply = ruled("no_occasion", happened, changes=verdict(change=change)["changes"])
    judge = GoalAchievementJudge(model=ScriptedModel([reply]))
    result = judge.evaluate(CONVERSATION, goal=GOAL, outcomes=("a",), must_not=("c",))
    assert score in (result.state, result.score)


def test_what_was_spoilt_without_an_occasion_for_an_outcome_needs_evidence_too() -> None:
    rules = [{**one, "evidence": ["Order 8 is cancelled."]} for one in ruled("no_occasion", "yes")["rules"]]
    reply = ruled(rules=rules)
    result = GoalAchievementJudge(ScriptedModel([reply, reply])).evaluate(
        CONVERSATION, goal=GOAL, outcomes=("a",), must_not=("c",)
    )
    assert (result.state, result.failure and result.failure.kind) == ("error", "evidence")


def test_rules_stand_beside_the_outcomes_of_the_goal_and_never_in_their_place() -> None:
    asks: list[Any] = [{"rule": 1, "evidence": ["In five days."], "happened": "yes"}]
    judge = ScriptedModel([{**verdict(*DENIED), "rules": asks}, {**verdict(*BOTH), "rules": asks}])
    metric = GoalAchievementJudge(model=judge)
    assert metric.evaluate(CONVERSATION, goal=GOAL, must=("say how long it takes",)).score == "partially_achieved"
    assert metric.evaluate(CONVERSATION, goal=GOAL, must=("say how long it takes",)).score == "fully_achieved"
    asked = judge.requests[0].messages[-1].text
    assert "criteria:" in asked
    assert '1. "say how long it takes"\n' in asked


CLAIMED = [
    {"role": "user", "content": "Cancel order 7, please."},
    {"role": "assistant", "tool_calls": [{"id": "x", "name": "get_order", "arguments": {"order": 7}}]},
    {"role": "tool", "tool_call_id": "x", "content": "open"},
    {"role": "assistant", "tool_calls": [{"id": "y", "name": "cancel", "arguments": {"order": 7}}]},
    {"role": "tool", "tool_call_id": "y", "content": "Error: closed"},
    {"role": "assistant", "content": "Order 7 is cancelled."},
]


@pytest.mark.parametrize(("evidence", "state"), [("Order 7 is cancelled.", "error"), ("c1", "error"), ("c0", "error")])
def test_a_change_that_no_call_made_is_not_met_by_what_is_said_of_it(evidence: str, state: str) -> None:
    change = {"outcome": "cancelled", "kind": "change", "evidence": [evidence], "met": True}
    answer: dict[str, Any] = {**verdict(change), "changes": []}
    judge = ScriptedModel([answer] * 2)
    result = GoalAchievementJudge(model=judge).evaluate(CLAIMED, goal=GOAL)
    assert result.state == state
    if state == "error":
        assert len(judge.requests) == 2
        assert result.failure is not None
        assert result.failure.message == "the verdict depends on 'cancelled', and no call made this change"


RENEWED = [
    {"role": "user", "content": "Renew L-2, please."},
    {"role": "assistant", "tool_calls": [{"id": "x", "name": "find_loan", "arguments": {"loan": "L-2"}}]},
    {"role": "tool", "tool_call_id": "x", "content": '{"due": "1 May"}'},
    {"role": "assistant", "tool_calls": [{"id": "y", "name": "renew_loan", "arguments": {"loan": "L-2"}}]},
    {"role": "tool", "tool_call_id": "y", "content": '{"due": "1 June", "renewed": true}'},
    {"role": "assistant", "content": "Loan L-2 is renewed."},
]


@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        ("c1", "scored"),
        ('{"due": "1 June", "renewed": true}', "scored"),
        ('renew_loan {"loan": "L-2"}', "scored"),
        ("c0", "error"),
        ('{"due": "1 May"}', "error"),
        ("Loan L-2 is renewed.", "error"),
    ],
)
def test_the_evidence_of_a_change_is_a_call_that_made_one(evidence: str, state: str) -> None:
    change = {"outcome": "renewed", "kind": "change", "evidence": [evidence], "met": True}
    answer: dict[str, Any] = {
        **verdict(change),
        "changes": [{"call": "c1", "asked": "", "rule": "", "verdict": "wanted"}],
    }
    judge = ScriptedModel([answer] * 2)
    result = GoalAchievementJudge(model=judge).evaluate(RENEWED, goal="Loan L-2 is renewed")
    assert (result.state, len(judge.requests)) == (state, 1 if state == "scored" else 2)
    if state == "error":
        assert "evidence of a change is a call whose result shows that it was done, one of c1" in str(result.failure)
        assert (
            "Evidence of a change is a call whose result shows that it was done, one of c1"
            in judge.requests[1].messages[-1].text
        )


def test_what_the_goal_asks_for_is_no_refusal() -> None:
    goal = "The tracking number of order 7 is told"
    refusal: dict[str, Any] = {"outcome": "The tracking number is told", "kind": "refusal", "evidence": [], "met": True}
    answer: dict[str, Any] = {**verdict(refusal), "changes": []}
    judge = ScriptedModel([answer] * 2)
    result = GoalAchievementJudge(model=judge).evaluate(CLAIMED[-1:], goal=goal)
    assert "the goal asks for this" in str(result.failure)
    assert "The goal asks for this" in judge.requests[1].messages[-1].text
    refusal = {"outcome": "a refund is made", "kind": "refusal", "evidence": [], "met": True}
    kept = GoalAchievementJudge(ScriptedModel([{**verdict(refusal), "changes": []}])).evaluate(
        CLAIMED[-1:], goal="No refund is made"
    )
    assert (kept.passed, kept.findings[0].verdict) == (True, "not done")


def test_the_older_form_of_a_reply_cannot_hide_breaches() -> None:
    told: dict[str, Any] = {
        "reasoning": "Done.",
        "achievement_level": "fully_achieved",
        "confidence": 1,
        "evidence": [],
    }
    assert GoalAchievementJudge(ScriptedModel([told])).evaluate(CONVERSATION, goal=GOAL).score == "fully_achieved"
    result = GoalAchievementJudge(ScriptedModel([{**told, "breaches": BREACH}])).evaluate(CONVERSATION, goal=GOAL)
    assert (result.state, result.passed) == ("error", None)


@pytest.mark.parametrize(
    ("quotes", "state"), [(["No."], "error"), (["No.", "In five days."], "scored"), ([], "scored")]
)
def test_the_older_form_of_a_reply_cannot_pass_on_invented_quotes_alone(quotes: list[str], state: str) -> None:
    level: dict[str, Any] = {"reasoning": "Done.", "achievement_level": "fully_achieved", "confidence": 1}
    judge = GoalAchievementJudge(ScriptedModel([{**level, "evidence": quotes}]))
    assert judge.evaluate(CONVERSATION, goal=GOAL).state == state


@pytest.mark.parametrize("said", ["failed", "passed", "exceeded"])
def test_where_everything_is_met_the_level_is_one_that_passes(said: str) -> None:
    levels = ["failed", "passed", "exceeded"]
    judge = GoalAchievementJudge(
        ScriptedModel([verdict(*BOTH, achievement_level=said)]), categories=levels, passing_categories="passed"
    )
    assert judge.evaluate(CONVERSATION, goal=GOAL).score == "passed"


def test_an_outcome_that_is_met_on_an_invented_quote_is_asked_about_once_more() -> None:
    judge = ScriptedModel([verdict(*INVENTED), verdict(*DENIED)])
    result = GoalAchievementJudge(model=judge).evaluate(CONVERSATION, goal=GOAL)
    assert (result.score, result.passed) == ("partially_achieved", False)
    first, second = judge.requests
    assert (first.schema, first.trial) == (second.schema, second.trial)
    assert list(second.messages[:2]) == list(first.messages)
    assert 'This quote is in no message: "Your refund is on its way."' in second.messages[-1].text


@pytest.mark.parametrize("second", [verdict(*INVENTED), ModelFault("down", kind="network")])
def test_where_the_goal_depends_on_an_invented_quote_there_is_no_score(second: Scripted) -> None:
    judge = GoalAchievementJudge(model=ScriptedModel([verdict(*INVENTED), second]))
    result = judge.evaluate(CONVERSATION, goal=GOAL)
    assert (result.state, result.value, result.passed) == ("error", None, None)
    assert result.failure
    assert (result.failure.blame, result.failure.kind) == ("judge", "evidence")
    assert "depends on a quote that is not in the conversation: 'Your refund is on its way.'" in result.failure.message
    assert "it is about 'refund told'" in result.failure.message


def test_a_second_answer_of_another_shape_is_an_error_of_the_judge() -> None:
    judge = GoalAchievementJudge(model=ScriptedModel([verdict(*INVENTED), {"nonsense": True}]))
    result = judge.evaluate(CONVERSATION, goal=GOAL)
    assert (result.state, result.value, result.failure and result.failure.kind) == ("error", None, "format")


def test_an_invented_quote_that_changes_nothing_is_named_and_the_score_stands() -> None:
    reply = verdict(*INVENTED, criterion("a voucher is sent", False))
    result = GoalAchievementJudge(model=ScriptedModel([reply, reply])).evaluate(CONVERSATION, goal=GOAL)
    assert (result.score, result.passed) == ("partially_achieved", False)
    assert [one.text for one in result.evidence if not one.verified] == ["Your refund is on its way."]


def test_silence_reaches_no_goal_and_no_judge_is_asked() -> None:
    judge = ScriptedModel([])
    result = GoalAchievementJudge(model=judge).evaluate([{"role": "user", "content": "Thanks, all done!"}], goal=GOAL)
    assert (result.score, result.value, result.passed, judge.requests) == ("not_achieved", 0.0, False, [])
    assert result.reason == "the assistant says and does nothing in this conversation"


def asked_of(request: Request) -> Asked:
    shape = request.schema
    assert isinstance(shape, type)
    assert issubclass(shape, GoalReply)
    return shape.asked


def fitting(request: Request, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what a piece is not asked about."""
    shape = asked_of(request)
    return answer if shape.calls else {**answer, "changes": []}


def in_pieces(request: Request) -> dict[str, Any]:
    shape = asked_of(request)
    return fitting(request, ruled("yes", "yes") if shape.rules else verdict(*BOTH))


class Paid(ScriptedModel):
    """A scripted model that says what it used."""

    async def complete(self, request: Request) -> ModelReply:
        reply = await super().complete(request)
        return ModelReply(reply.text, reply.parsed, usage=Usage(calls=1))


@pytest.mark.parametrize(("replies", "reads"), [((verdict(*BOTH),), 1), ((verdict(*INVENTED), verdict(*DENIED)), 2)])
def test_an_answer_is_read_once(
    replies: tuple[dict[str, Any], ...], reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    class Counted(GoalAchievementJudge):
        def read(self, reply: GoalReply, question: Question) -> Verdict:
            read.append(reply)
            return super().read(reply, question)

    assert Counted(ScriptedModel(replies)).evaluate(CONVERSATION, goal=GOAL).state == "scored"
    assert len(read) == reads
    read.clear()
    pieces = ScriptedModel(in_pieces)
    result = Counted(pieces, tokens=20).evaluate(CONVERSATION, goal=GOAL)
    assert len(read) == len(pieces.requests) == len(result.extra["pieces"]) == 2


def test_an_answer_that_nobody_can_read_is_paid_for_and_not_asked_again() -> None:
    judge = Paid([{"nonsense": True}])
    result = GoalAchievementJudge(judge).evaluate(CONVERSATION, goal=GOAL)
    assert (result.failure and result.failure.kind, result.usage) == ("format", Usage(calls=1))
    assert len(judge.requests) == 1


async def test_pieces_are_asked_at_once_where_the_outcomes_are_known() -> None:
    class Meeting(ScriptedModel):
        async def complete(self, request: Request) -> ModelReply:
            await meeting.wait()
            return await super().complete(request)

    meeting = asyncio.Barrier(2)
    judge = GoalAchievementJudge(Meeting(lambda request: fitting(request, ruled("yes"))), tokens=20)
    async with asyncio.timeout(10):
        assert (await judge.aevaluate(CONVERSATION, GOAL, outcomes=("cancelled",))).passed is True


def test_an_answer_that_cannot_be_used_says_why_in_one_sentence() -> None:
    reply = verdict(*BOTH, rules=[{"rule": 1, "evidence": [], "happened": "yes"}])
    result = GoalAchievementJudge(model=ScriptedModel([reply])).evaluate(CONVERSATION, goal=GOAL)
    assert result.error is not None
    assert result.error.message == "the judge's answer cannot be used: there are no rules to answer; got 1"
