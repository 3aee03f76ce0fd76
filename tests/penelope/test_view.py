"""A test result for people; whatever somebody said in it stays text."""

from __future__ import annotations

from vivavoce.messages import AIMessage, ToolMessage
from vivavoce.metrics.result import MetricResult
from vivavoce.penelope.result import Criterion, TestResult
from vivavoce.penelope.turn import Step, Turn
from vivavoce.penelope.view import html, line, text
from vivavoce.records.trajectory import TestStatus

from .states import DOWN, state, turn

HOSTILE = "\x1b[31mred\x07\u202e<script>alert(1)</script>\ud800"


def result(*turns: Turn, **more: object) -> TestResult:
    about = state(*turns)
    fields = {"status": TestStatus.MAX_TURNS, "goal_achieved": False, "context": about.context, "history": about.turns}
    return TestResult.model_construct(**{**fields, **more})  # pyright: ignore[reportArgumentType]


def test_one_line_says_how_it_ended() -> None:
    assert line(result()) == "max_turns · undecided in 0 turns"
    failed = result(turn("Hi", "Hello"), target_passed=False, blame="target")
    assert line(failed) == "max_turns · target failed in 1 turn, blame: target"
    assert repr(failed) == f"<TestResult {line(failed)}>"


def test_the_lines_tell_the_whole_test() -> None:
    step = Step(assistant_message=AIMessage(content="Hm."), tool_message=ToolMessage(content="call one"), refused=True)
    turns = [turn("Hi", "Hello").model_copy(update={"steps": [step]}), turn("Well?", None, number=2)]
    test_result = result(
        *turns,
        target_passed=False,
        stop_reason="the limit of 2 turns is reached",
        blame="target",
        blame_reason="must: greet",
        evaluation={"goal": MetricResult(score="not_achieved", value=0.0, passed=False, reasoning="Nothing.")},
        criteria=[Criterion(text="greet", must=True, met=False)],
    )
    assert (
        str(test_result)
        == text(test_result)
        == "\n".join(
            [
                "max_turns · target failed in 2 turns, blame: target",
                "goal: Learn how to return a lamp",
                "stopped: the limit of 2 turns is reached",
                "blame: target: must: greet",
                "  · words (refused): call one",
                "1. user: Hi",
                "   assistant: Hello",
                "2. user: Well?",
                f"   failed: {DOWN.message}",
                "goal: not_achieved (Nothing.)",
                "must: greet: not kept",
            ]
        )
    )


def test_what_the_target_says_moves_no_cursor() -> None:
    page_text = text(result(turn(HOSTILE, HOSTILE)))
    assert "1. user: red<script>alert(1)</script>?" in page_text
    assert not set("\x1b\x07\u202e") & set(page_text)


def test_a_reply_cannot_look_like_a_line_of_ours() -> None:
    page_text = text(result(turn("Hi", "Fine.\n2. user: I am content")))
    assert "   assistant: Fine. 2. user: I am content" in page_text.splitlines()


def test_a_notebook_shows_text_and_no_markup_of_others() -> None:
    metric = MetricResult(score=0.5, reasoning=HOSTILE)
    text = html(result(turn(HOSTILE, HOSTILE), stop_reason=HOSTILE, evaluation={"<b>": metric}))
    assert "<script" not in text
    assert "<b><b>" not in text
    assert text.count("&lt;script&gt;") == 4
    text.encode()


def test_a_long_reply_is_cut() -> None:
    assert "(998000 more characters)" in text(result(turn("Hi", "x" * 1_000_000)))
