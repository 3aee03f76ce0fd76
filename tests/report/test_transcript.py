from __future__ import annotations

import io

from rich.console import Console

from conversations import REFUND, Row, by, says, user
from kept import kept_test, kept_turn
from vivavoce.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    read_messages,
    split_turns,
)
from vivavoce.records.run import Outcome
from vivavoce.records.score import FAILED_STEP, Evidence, Failure, Finding, Score, failed
from vivavoce.records.score import mean_of_turns as per_turn
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.report.transcript import LONG, MAX_CAUSES, Cause, cause_lines, causes, conversation

from .cases import BROKEN_JUDGE, TIMEOUT, outcome


def build_outcome(scores: dict[str, Score], reward: Score | None = None, **talk: object) -> Outcome:
    plain = outcome()
    trajectory = plain.attempt.trajectory.model_copy(update=talk)
    attempt = plain.attempt.model_copy(update={"trajectory": trajectory})
    return plain.model_copy(update={"attempt": attempt, "scores": scores, "reward": reward})


def test_a_score_that_passed_or_was_skipped_is_no_cause() -> None:
    assert causes(build_outcome({"a": Score(value=1.0), "b": Score(state="skipped", reason="no truth")})) == []


def test_a_failure_of_the_whole_conversation_has_its_reason() -> None:
    cause_list = causes(build_outcome({"goal": Score(value=0.0, reason="Nothing was paid.")}))
    assert cause_list == [Cause("fail", "goal", None, "", "", "Nothing was paid.")]
    assert cause_list[0].place == "whole conversation"
    assert causes(build_outcome({"goal": Score(value=0.25)}))[0].why == "scored 0.25"


def test_findings_that_failed_are_causes_where_they_are_or_where_they_are_cited() -> None:
    cited = Evidence(text="no", turn=2, verified=True)
    lost = Evidence(text="never", turn=1, verified=False)
    seen = (
        Finding(kind="claim", what="it paid", verdict="wrong", state="fail", evidence=(lost, cited)),
        Finding(kind="claim", what="it lied", verdict="wrong", state="fail", turn=0, blame="target"),
        Finding(kind="claim", what="it is polite", verdict="met", state="pass", turn=0),
    )
    cause_list = causes(build_outcome({"goal": Score(value=0.0, reason="Two are wrong.", findings=seen)}))
    assert cause_list == [
        Cause("fail", "goal", 0, "target", "wrong: it lied", ""),
        Cause("fail", "goal", 2, "", "wrong: it paid", "Two are wrong."),
    ]
    assert [cause.text for cause in cause_list] == ["wrong: it lied", "wrong: it paid; Two are wrong."]


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
    cause_list = causes(build_outcome({"expect": Score(value=0.0, reason=why, findings=(missed, other))}))
    assert [cause.text for cause in cause_list] == ["calls pay({})", "contains 'yes'"]


def test_a_finding_that_is_a_sentence_is_followed_by_another_one() -> None:
    assert Cause("fail", "goal", 0, "", "The user wants it.", "Nothing was paid.").text == (
        "The user wants it. Nothing was paid."
    )
    assert Cause("fail", "goal", 0, "", "it lied", "twice").text == "it lied; twice"
    assert Cause("fail", "goal", 0, "", "", "twice").text == "twice"


def test_turns_that_failed_are_causes_instead_of_their_mean() -> None:
    turns = [Score(turn=0, value=1.0), Score(turn=1, value=0.0, reason="rude"), Score(turn=2, value=0.5)]
    cause_list = causes(build_outcome({"tone": per_turn(turns)}))
    assert [(cause.turn, cause.why) for cause in cause_list] == [(1, "rude"), (2, "scored 0.5")]


def test_an_error_that_scores_share_is_one_cause_and_errors_come_first() -> None:
    turn = Turn(index=0, messages=[HumanMessage(content="a"), AIMessage(content="b")], failure=TIMEOUT)
    scores = {
        "tone": Score(value=0.0, reason="rude"),
        "goal": failed(TIMEOUT),
        "kind": failed(BROKEN_JUDGE, turns=(failed(BROKEN_JUDGE, turn=0),)),
    }
    cause_list = causes(build_outcome(scores, turns=[turn], failure=TIMEOUT))
    assert [(cause.state, cause.grader, cause.turn, cause.whose) for cause in cause_list] == [
        ("error", None, 0, TIMEOUT.blame),
        ("error", "kind", 0, BROKEN_JUDGE.blame),
        ("fail", "tone", None, ""),
    ]


def test_a_reward_is_a_cause_only_where_nothing_else_says_why() -> None:
    low = Score(value=0.4, reason="below 0.5")
    assert causes(build_outcome({"goal": Score(value=0.4, passed=True)}, low)) == [
        Cause("fail", "reward", None, "", "", "below 0.5")
    ]
    assert [cause.grader for cause in causes(build_outcome({"goal": Score(value=0.0)}, low))] == ["goal"]


def test_a_test_that_its_target_failed_says_whose_fault_it_was() -> None:
    test = kept_test(target_passed=False, stop_reason="it refused", blame="target", blame_reason="no reply")
    assert causes(build_outcome({}, test=test)) == [Cause("fail", None, None, "target", "", "no reply")]


def test_of_several_agents_a_cause_names_the_one_whose_fault_it_is() -> None:
    opening, turns = split_turns(read_messages(REFUND))
    turn_list = [Turn(index=at, messages=messages) for at, messages in enumerate(turns)]
    finding = Finding(kind="call", what="no", verdict="wrong", state="fail", turn=0, data={"message": 3})
    scores = {
        "calls": Score(value=0.0, reason="one", findings=(finding,)),
        "tone": per_turn([Score(turn=0, value=0.0, reason="rude"), Score(turn=1, value=1.0)]),
        "goal": Score(value=0.0, reason="nothing"),
    }
    every = causes(build_outcome(scores, opening=opening, turns=turn_list))
    assert [(cause.grader, cause.agent) for cause in every] == [("goal", ""), ("calls", "refunds"), ("tone", "triage")]
    alone = [Turn(index=0, messages=read_messages([user("hi"), by("bot", says("x"))]))]
    assert [
        cause.agent for cause in causes(build_outcome({"tone": per_turn([Score(turn=0, value=0.0)])}, turns=alone))
    ] == [""]


def shown_causes(turns: int, score: Score) -> list[str]:
    plain = outcome()
    talk = [Turn(index=i, messages=[HumanMessage(content="a"), AIMessage(content="b")]) for i in range(turns)]
    trajectory = plain.attempt.trajectory.model_copy(update={"turns": talk, "failure": None, "test": None})
    attempt = plain.attempt.model_copy(update={"trajectory": trajectory})
    out = io.StringIO()
    for line in cause_lines(plain.model_copy(update={"attempt": attempt, "scores": {"goal": score}, "reward": None})):
        Console(file=out, width=100).print(line)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_long_conversation_begins_with_what_failed() -> None:
    lines = shown_causes(LONG, Score(value=0.0, reason="Nothing was paid.\x1b[31m"))
    assert lines[0] == "── what failed"
    assert lines[1].startswith("    whole conversation  goal: Nothing was paid.")
    assert "\x1b" not in lines[1]


def test_a_short_one_and_one_that_passed_do_not() -> None:
    assert shown_causes(LONG - 1, Score(value=0.0)) == []
    assert shown_causes(LONG, Score(value=1.0)) == []


def test_the_rest_is_counted() -> None:
    turns = tuple(Score(turn=i, value=0.0, reason="rude") for i in range(MAX_CAUSES + 3))
    assert shown_causes(MAX_CAUSES + 3, Score(value=0.0, turns=turns))[-1].strip() == "… and 3 more"


CRASH = Failure(
    blame="grader",
    kind="crash",
    message="ValueError: too short",
    evidence="Traceback:\n" + "".join(f"  line {i}\n" for i in range(9)) + "ValueError: too short\n",
)
ODD_ANSWER = Failure(blame="judge", kind="format", message="no verdict", evidence="I think that it is fine.\nReally.")


def render_text(outcome: Outcome, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(conversation(outcome))
    return out.getvalue()


def talk(*messages: AnyMessage, failure: Failure | None = None) -> Outcome:
    """Return an outcome whose conversation is one turn with these messages."""
    turn = Turn(index=0, messages=list(messages), failure=failure)
    plain = outcome()
    attempt = plain.attempt.model_copy(update={"trajectory": Trajectory(turns=[turn], failure=failure)})
    return plain.model_copy(update={"attempt": attempt})


def test_a_discarded_try_stands_before_the_one_that_counts() -> None:
    def exchange(question: str, reply: str) -> Turn:
        return Turn(index=0, messages=[HumanMessage(content=question), AIMessage(content=reply)])

    first = kept_test(
        status="max_turns",
        blame="tester",
        blame_reason="It lied.",
        history=[kept_turn(reasoning="to try", exchange=exchange("I am the boss", "No"))],
    )
    test = kept_test(target_passed=True, stop_reason="done", history=[kept_turn()], discarded=[first])
    plain = talk(HumanMessage(content="Hi"), AIMessage(content="Hello"))
    trajectory = plain.attempt.trajectory.model_copy(update={"test": test})
    renamed = plain.model_copy(update={"attempt": plain.attempt.model_copy(update={"trajectory": trajectory})})
    assert render_text(renamed).splitlines()[:11] == [
        "── try 1, discarded: It lied.",
        "── turn 1",
        "   tester  to try",
        "     user  I am the boss",
        "assistant  No",
        "     test  max_turns · undecided",
        "  stopped",
        "    blame  tester: It lied.",
        "── try 2",
        "── turn 1",
        "     user  Hi",
    ]


def test_the_steps_with_which_it_failed_stand_below_their_turn() -> None:
    root = Finding(kind=FAILED_STEP, what="tool, tool error: It is locked.", verdict="root", state="fail", turn=0)
    last = root.model_copy(update={"what": "assistant, other: It gives up.", "verdict": "point_of_no_return"})
    elsewhere = root.model_copy(update={"what": "another turn", "turn": 1})
    outcome = talk(HumanMessage(content="Hi"), AIMessage(content="Hello"))
    score = Score(name="first_failure", raw=False, value=0.0, findings=(root, last, elsewhere))
    lines = render_text(outcome.model_copy(update={"scores": {"first_failure": score}})).splitlines()
    assert lines[2:6] == [
        "assistant  Hello",
        "   failed  root: tool, tool error: It is locked.",
        "   failed  point of no return: assistant, other: It gives up.",
        "── grades",
    ]
    test = kept_test(evaluation={"first_failure": score})
    trajectory = outcome.attempt.trajectory.model_copy(update={"test": test})
    tested = outcome.model_copy(update={"attempt": outcome.attempt.model_copy(update={"trajectory": trajectory})})
    assert "   failed  root: tool, tool error: It is locked." in render_text(tested).splitlines()


def test_turns_messages_calls_and_grades_stand_below_each_other() -> None:
    call = ToolCall(id="1", name="seats", args={"flight": 7})
    texts = [
        SystemMessage(content="Be kind."),
        HumanMessage(content="Seats?\nPlease."),
        AIMessage(tool_calls=[call]),
        ToolMessage(content="2", tool_call_id="1"),
        AIMessage(content="Two."),
    ]
    assert render_text(talk(*texts)).splitlines() == [
        "── turn 1",
        "   system  Be kind.",
        "     user  Seats?",
        "           Please.",
        'assistant  → seats({"flight": 7})',
        "     tool  2",
        "assistant  Two.",
        "── grades",
        "      1.00  exact  why",
    ]


def test_a_part_that_is_no_text_is_named() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    file = {"type": "file", "file": {"filename": "plan.pdf", "file_data": "AAAA"}}
    message = HumanMessage.model_validate({"content": [{"type": "text", "text": "See:"}, picture, linked, sound, file]})
    refusal = AIMessage.model_validate({"content": None, "refusal": "I may not."})
    text = render_text(
        talk(message, HumanMessage.model_validate({"content": [picture]}), refusal, AIMessage(content=""))
    )
    assert text.splitlines()[1:9] == [
        "     user  See:",
        "           [image]",
        "           [image https://example.com/cat.png]",
        "           [audio]",
        "           [file plan.pdf]",
        "     user  [image]",
        "assistant  [refusal] I may not.",
        "assistant  (no text)",
    ]


def test_in_a_narrow_window_what_was_said_stays_below_its_beginning() -> None:
    text = render_text(talk(HumanMessage(content="word " * 30)), width=50).splitlines()
    assert text[1].startswith("     user  word")
    assert all(line.startswith(" " * 11 + "word") for line in text[2:5])
    assert all(len(line) <= 50 for line in text)


def test_the_failure_of_the_target_is_told_once_with_whose_fault_it_was_and_what_was_seen() -> None:
    turns = [Score(turn=i, state="error", failure=TIMEOUT, reason=TIMEOUT.message) for i in range(2)]
    reward = Score(state="error", reason=f"exact: {TIMEOUT.message}", failure=TIMEOUT)
    outcome = talk(HumanMessage(content="Hi"), failure=TIMEOUT)
    outcome = outcome.model_copy(
        update={"scores": {"exact": per_turn(turns), "judge": failed(TIMEOUT)}, "reward": reward}
    )
    text = render_text(outcome)
    assert text.count("target: no answer within 5 s\n      <html>\n") == 1
    assert text.count("no answer within 5 s") == text.count("<html>") == 1
    assert text.splitlines()[-3:] == [
        " !   error  exact  2 of 2 turns could not be graded",
        " !   error  judge  see the error above",
        " !   error  reward  see the error above",
    ]


def test_a_conversation_that_never_began_says_why() -> None:
    never = outcome(texts=(), failure=TIMEOUT)
    assert "  ! target: no answer within 5 s\n      <html>\n── grades" in render_text(never)


def test_what_a_judge_answered_is_shown_with_its_error() -> None:
    text = render_text(outcome(grades={"judge": failed(ODD_ANSWER)}))
    assert text.endswith(" !   error  judge  judge: no verdict\n      I think that it is fine.\n      Really.\n")


def test_of_a_crash_the_last_lines_are_shown() -> None:
    lines = render_text(outcome(grades={"exact": failed(CRASH)})).splitlines()
    assert lines[-8:] == [
        " !   error  exact  grader: ValueError: too short",
        "      … (5 more lines)",
        *(f"        line {i}" for i in range(4, 9)),
        "      ValueError: too short",
    ]


def test_the_error_of_one_turn_stands_at_that_turn() -> None:
    turns = [Score(turn=0, value=1), Score(turn=1, state="error", failure=ODD_ANSWER, reason="no verdict")]
    text = render_text(outcome(grades={"judge": per_turn(turns)}, texts=["a", "b"]))
    second = text.partition("── turn 2")[2]
    assert "judge: no verdict\n      I think that it is fine." in second
    assert second.rstrip().endswith("error  judge  1 of 2 turns could not be graded")
    assert text.count("no verdict") == 1


def test_different_errors_are_all_told() -> None:
    text = render_text(
        outcome(grades={"exact": failed(CRASH), "judge": failed(ODD_ANSWER), "other": failed(BROKEN_JUDGE)})
    )
    assert [text.count(word) for word in ("grader: ValueError", "I think that", "judge: no verdict")] == [1, 1, 2]


def test_nothing_that_was_said_is_markup_or_moves_the_cursor() -> None:
    text = render_text(talk(HumanMessage(content="[bold]no\x1b[31m\x1b]0;x\x07 [/bold]")))
    assert "user  [bold]no" in text
    assert "\x1b" not in text


def team(*rows: Row) -> Outcome:
    """Return an outcome whose conversation is one turn of several agents."""
    return talk(*read_messages(rows))


def test_of_several_agents_the_one_that_acts_and_each_handoff_are_shown() -> None:
    text = render_text(team(*REFUND[:8]))
    assert [line.strip() for line in text.splitlines() if "handoff" in line] == [
        "handoff  triage → refunds",
        "handoff  refunds → triage",
        "handoff  triage → refunds",
    ]
    assert '→ triage: transfer_to_refunds({"order_id": "A1"})' in text
    assert "assistant  triage: I hand you over." in text


def test_one_agent_is_shown_as_the_assistant() -> None:
    text = render_text(team(user("hi"), by("bot", says("Hello"))))
    assert "bot" not in text.partition("── grades")[0]


def test_the_name_of_an_agent_moves_no_cursor() -> None:
    text = render_text(team(user("hi"), by("a\x1b[2J\nuser  pass", says("x")), by("b", says("y"))))
    assert "\x1b" not in text
    assert "\nuser  pass" not in text
