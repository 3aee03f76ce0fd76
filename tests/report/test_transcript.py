from __future__ import annotations

import io

from rich.console import Console

from conversations import REFUND, Row, by, says, user
from kept import kept_test, kept_turn
from vivavoce.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, read_messages
from vivavoce.records.run import Outcome
from vivavoce.records.score import FAILED_STEP, Failure, Finding, Score, failed
from vivavoce.records.score import mean_of_turns as per_turn
from vivavoce.records.trajectory import Trajectory, Turn
from vivavoce.report.transcript import conversation

from .cases import BROKEN_JUDGE, TIMEOUT, outcome

CRASH = Failure(
    blame="grader",
    kind="crash",
    message="ValueError: too short",
    evidence="Traceback:\n" + "".join(f"  line {i}\n" for i in range(9)) + "ValueError: too short\n",
)
ODD_ANSWER = Failure(blame="judge", kind="format", message="no verdict", evidence="I think that it is fine.\nReally.")


def shown(found: Outcome, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(conversation(found))
    return out.getvalue()


def talk(*messages: AnyMessage, failure: Failure | None = None) -> Outcome:
    """Return an outcome whose conversation is one turn with these messages."""
    turn = Turn(index=0, messages=list(messages), failure=failure)
    plain = outcome()
    attempt = plain.attempt.model_copy(update={"trajectory": Trajectory(turns=[turn], failure=failure)})
    return plain.model_copy(update={"attempt": attempt})


def test_a_discarded_try_stands_before_the_one_that_counts() -> None:
    def exchange(said: str, reply: str) -> Turn:
        return Turn(index=0, messages=[HumanMessage(content=said), AIMessage(content=reply)])

    first = kept_test(
        status="max_turns",
        blame="tester",
        blame_reason="It lied.",
        history=[kept_turn(reasoning="to try", exchange=exchange("I am the boss", "No"))],
    )
    test = kept_test(target_passed=True, stop_reason="done", history=[kept_turn()], discarded=[first])
    plain = talk(HumanMessage(content="Hi"), AIMessage(content="Hello"))
    trajectory = plain.attempt.trajectory.model_copy(update={"test": test})
    found = plain.model_copy(update={"attempt": plain.attempt.model_copy(update={"trajectory": trajectory})})
    assert shown(found).splitlines()[:11] == [
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
    found = talk(HumanMessage(content="Hi"), AIMessage(content="Hello"))
    score = Score(name="first_failure", raw=False, value=0.0, findings=(root, last, elsewhere))
    lines = shown(found.model_copy(update={"scores": {"first_failure": score}})).splitlines()
    assert lines[2:6] == [
        "assistant  Hello",
        "   failed  root: tool, tool error: It is locked.",
        "   failed  point of no return: assistant, other: It gives up.",
        "── grades",
    ]
    test = kept_test(evaluation={"first_failure": score})
    trajectory = found.attempt.trajectory.model_copy(update={"test": test})
    tested = found.model_copy(update={"attempt": found.attempt.model_copy(update={"trajectory": trajectory})})
    assert "   failed  root: tool, tool error: It is locked." in shown(tested).splitlines()


def test_turns_messages_calls_and_grades_stand_below_each_other() -> None:
    call = ToolCall(id="1", name="seats", args={"flight": 7})
    said = [
        SystemMessage(content="Be kind."),
        HumanMessage(content="Seats?\nPlease."),
        AIMessage(tool_calls=[call]),
        ToolMessage(content="2", tool_call_id="1"),
        AIMessage(content="Two."),
    ]
    assert shown(talk(*said)).splitlines() == [
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
    text = shown(talk(message, HumanMessage.model_validate({"content": [picture]}), refusal, AIMessage(content="")))
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
    text = shown(talk(HumanMessage(content="word " * 30)), width=50).splitlines()
    assert text[1].startswith("     user  word")
    assert all(line.startswith(" " * 11 + "word") for line in text[2:5])
    assert all(len(line) <= 50 for line in text)


def test_the_failure_of_the_target_is_told_once_with_whose_fault_it_was_and_what_was_seen() -> None:
    turns = [Score(turn=i, state="error", failure=TIMEOUT, reason=TIMEOUT.message) for i in range(2)]
    reward = Score(state="error", reason=f"exact: {TIMEOUT.message}", failure=TIMEOUT)
    found = talk(HumanMessage(content="Hi"), failure=TIMEOUT)
    found = found.model_copy(update={"scores": {"exact": per_turn(turns), "judge": failed(TIMEOUT)}, "reward": reward})
    text = shown(found)
    assert text.count("target: no answer within 5 s\n      <html>\n") == 1
    assert text.count("no answer within 5 s") == text.count("<html>") == 1
    assert text.splitlines()[-3:] == [
        " !   error  exact  2 of 2 turns could not be graded",
        " !   error  judge  see the error above",
        " !   error  reward  see the error above",
    ]


def test_a_conversation_that_never_began_says_why() -> None:
    never = outcome(said=(), failure=TIMEOUT)
    assert "  ! target: no answer within 5 s\n      <html>\n── grades" in shown(never)


def test_what_a_judge_answered_is_shown_with_its_error() -> None:
    text = shown(outcome(grades={"judge": failed(ODD_ANSWER)}))
    assert text.endswith(" !   error  judge  judge: no verdict\n      I think that it is fine.\n      Really.\n")


def test_of_a_crash_the_last_lines_are_shown() -> None:
    lines = shown(outcome(grades={"exact": failed(CRASH)})).splitlines()
    assert lines[-8:] == [
        " !   error  exact  grader: ValueError: too short",
        "      … (5 more lines)",
        *(f"        line {i}" for i in range(4, 9)),
        "      ValueError: too short",
    ]


def test_the_error_of_one_turn_stands_at_that_turn() -> None:
    turns = [Score(turn=0, value=1), Score(turn=1, state="error", failure=ODD_ANSWER, reason="no verdict")]
    text = shown(outcome(grades={"judge": per_turn(turns)}, said=["a", "b"]))
    second = text.partition("── turn 2")[2]
    assert "judge: no verdict\n      I think that it is fine." in second
    assert second.rstrip().endswith("error  judge  1 of 2 turns could not be graded")
    assert text.count("no verdict") == 1


def test_different_errors_are_all_told() -> None:
    text = shown(outcome(grades={"exact": failed(CRASH), "judge": failed(ODD_ANSWER), "other": failed(BROKEN_JUDGE)}))
    assert [text.count(word) for word in ("grader: ValueError", "I think that", "judge: no verdict")] == [1, 1, 2]


def test_nothing_that_was_said_is_markup_or_moves_the_cursor() -> None:
    text = shown(talk(HumanMessage(content="[bold]no\x1b[31m\x1b]0;x\x07 [/bold]")))
    assert "user  [bold]no" in text
    assert "\x1b" not in text


def team(*rows: Row) -> Outcome:
    """Return an outcome whose conversation is one turn of several agents."""
    return talk(*read_messages(rows))


def test_of_several_agents_the_one_that_acts_and_each_handoff_are_shown() -> None:
    text = shown(team(*REFUND[:8]))
    assert [line.strip() for line in text.splitlines() if "handoff" in line] == [
        "handoff  triage → refunds",
        "handoff  refunds → triage",
        "handoff  triage → refunds",
    ]
    assert '→ triage: transfer_to_refunds({"order_id": "A1"})' in text
    assert "assistant  triage: I hand you over." in text


def test_one_agent_is_shown_as_the_assistant() -> None:
    text = shown(team(user("hi"), by("bot", says("Hello"))))
    assert "bot" not in text.partition("── grades")[0]


def test_the_name_of_an_agent_moves_no_cursor() -> None:
    text = shown(team(user("hi"), by("a\x1b[2J\nuser  pass", says("x")), by("b", says("y"))))
    assert "\x1b" not in text
    assert "\nuser  pass" not in text
