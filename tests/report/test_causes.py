from __future__ import annotations

from conversations import REFUND, by, says, user
from kept import kept_test
from vivavoce.messages import AIMessage, HumanMessage, read_messages, split_turns
from vivavoce.records.run import Outcome
from vivavoce.records.score import Evidence, Finding, Score, failed
from vivavoce.records.score import mean_of_turns as per_turn
from vivavoce.records.trajectory import Turn
from vivavoce.report.causes import Cause, causes

from .cases import BROKEN_JUDGE, TIMEOUT, outcome


def graded(scores: dict[str, Score], reward: Score | None = None, **talk: object) -> Outcome:
    plain = outcome()
    trajectory = plain.attempt.trajectory.model_copy(update=talk)
    attempt = plain.attempt.model_copy(update={"trajectory": trajectory})
    return plain.model_copy(update={"attempt": attempt, "scores": scores, "reward": reward})


def test_a_score_that_passed_or_was_skipped_is_no_cause() -> None:
    assert causes(graded({"a": Score(value=1.0), "b": Score(state="skipped", reason="no truth")})) == []


def test_a_failure_of_the_whole_conversation_has_its_reason() -> None:
    found = causes(graded({"goal": Score(value=0.0, reason="Nothing was paid.")}))
    assert found == [Cause("fail", "goal", None, "", "", "Nothing was paid.")]
    assert found[0].place == "whole conversation"
    assert causes(graded({"goal": Score(value=0.25)}))[0].why == "scored 0.25"


def test_findings_that_failed_are_causes_where_they_are_or_where_they_are_cited() -> None:
    cited = Evidence(text="no", turn=2, verified=True)
    lost = Evidence(text="never", turn=1, verified=False)
    seen = (
        Finding(kind="claim", what="it paid", verdict="wrong", state="fail", evidence=(lost, cited)),
        Finding(kind="claim", what="it lied", verdict="wrong", state="fail", turn=0, blame="target"),
        Finding(kind="claim", what="it is polite", verdict="met", state="pass", turn=0),
    )
    found = causes(graded({"goal": Score(value=0.0, reason="Two are wrong.", findings=seen)}))
    assert found == [
        Cause("fail", "goal", 0, "target", "wrong: it lied", ""),
        Cause("fail", "goal", 2, "", "wrong: it paid", "Two are wrong."),
    ]
    assert [one.text for one in found] == ["wrong: it lied", "wrong: it paid; Two are wrong."]


def test_a_reason_that_only_lists_the_findings_is_not_repeated() -> None:
    missed = Finding(
        kind="assertion",
        what="does not call pay",
        verdict="missed",
        state="fail",
        turn=1,
        data={"found": "calls pay({})"},
    )
    other = Finding(kind="assertion", what="contains 'yes'", verdict="missed", state="fail", turn=1)
    why = "turn 2: calls pay({}); does not contain 'yes', said 'Done.'"
    found = causes(graded({"expect": Score(value=0.0, reason=why, findings=(missed, other))}))
    assert [one.text for one in found] == ["calls pay({})", "contains 'yes'"]


def test_a_finding_that_is_a_sentence_is_followed_by_another_one() -> None:
    assert Cause("fail", "goal", 0, "", "The user wants it.", "Nothing was paid.").text == (
        "The user wants it. Nothing was paid."
    )
    assert Cause("fail", "goal", 0, "", "it lied", "twice").text == "it lied; twice"
    assert Cause("fail", "goal", 0, "", "", "twice").text == "twice"


def test_turns_that_failed_are_causes_instead_of_their_mean() -> None:
    turns = [Score(turn=0, value=1.0), Score(turn=1, value=0.0, reason="rude"), Score(turn=2, value=0.5)]
    found = causes(graded({"tone": per_turn(turns)}))
    assert [(one.turn, one.why) for one in found] == [(1, "rude"), (2, "scored 0.5")]


def test_an_error_that_scores_share_is_one_cause_and_errors_come_first() -> None:
    turn = Turn(index=0, messages=[HumanMessage(content="a"), AIMessage(content="b")], failure=TIMEOUT)
    scores = {
        "tone": Score(value=0.0, reason="rude"),
        "goal": failed(TIMEOUT),
        "kind": failed(BROKEN_JUDGE, turns=(failed(BROKEN_JUDGE, turn=0),)),
    }
    found = causes(graded(scores, turns=[turn], failure=TIMEOUT))
    assert [(one.state, one.grader, one.turn, one.whose) for one in found] == [
        ("error", None, 0, TIMEOUT.blame),
        ("error", "kind", 0, BROKEN_JUDGE.blame),
        ("fail", "tone", None, ""),
    ]


def test_a_reward_is_a_cause_only_where_nothing_else_says_why() -> None:
    low = Score(value=0.4, reason="below 0.5")
    assert causes(graded({"goal": Score(value=0.4, passed=True)}, low)) == [
        Cause("fail", "reward", None, "", "", "below 0.5")
    ]
    assert [one.grader for one in causes(graded({"goal": Score(value=0.0)}, low))] == ["goal"]


def test_a_test_that_its_target_failed_says_whose_fault_it_was() -> None:
    test = kept_test(target_passed=False, stop_reason="it refused", blame="target", blame_reason="no reply")
    assert causes(graded({}, test=test)) == [Cause("fail", None, None, "target", "", "no reply")]


def test_of_several_agents_a_cause_names_the_one_whose_fault_it_is() -> None:
    opening, turns = split_turns(read_messages(REFUND))
    held = [Turn(index=at, messages=messages) for at, messages in enumerate(turns)]
    found = Finding(kind="call", what="no", verdict="wrong", state="fail", turn=0, data={"message": 3})
    scores = {
        "calls": Score(value=0.0, reason="one", findings=(found,)),
        "tone": per_turn([Score(turn=0, value=0.0, reason="rude"), Score(turn=1, value=1.0)]),
        "goal": Score(value=0.0, reason="nothing"),
    }
    every = causes(graded(scores, opening=opening, turns=held))
    assert [(one.grader, one.agent) for one in every] == [("goal", ""), ("calls", "refunds"), ("tone", "triage")]
    alone = [Turn(index=0, messages=read_messages([user("hi"), by("bot", says("x"))]))]
    assert [one.agent for one in causes(graded({"tone": per_turn([Score(turn=0, value=0.0)])}, turns=alone))] == [""]
