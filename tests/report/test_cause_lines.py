from __future__ import annotations

import io

from rich.console import Console

from vivavoce.messages import AIMessage, HumanMessage
from vivavoce.records.score import Score
from vivavoce.records.trajectory import Turn
from vivavoce.report.causes import LONG, MOST, cause_lines

from .cases import outcome


def shown(turns: int, score: Score) -> list[str]:
    plain = outcome()
    talk = [Turn(index=i, messages=[HumanMessage(content="a"), AIMessage(content="b")]) for i in range(turns)]
    trajectory = plain.attempt.trajectory.model_copy(update={"turns": talk, "failure": None, "test": None})
    attempt = plain.attempt.model_copy(update={"trajectory": trajectory})
    out = io.StringIO()
    for line in cause_lines(plain.model_copy(update={"attempt": attempt, "scores": {"goal": score}, "reward": None})):
        Console(file=out, width=100).print(line)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_long_conversation_begins_with_what_failed() -> None:
    lines = shown(LONG, Score(value=0.0, reason="Nothing was paid.\x1b[31m"))
    assert lines[0] == "── what failed"
    assert lines[1].startswith("    whole conversation  goal: Nothing was paid.")
    assert "\x1b" not in lines[1]


def test_a_short_one_and_one_that_passed_do_not() -> None:
    assert shown(LONG - 1, Score(value=0.0)) == []
    assert shown(LONG, Score(value=1.0)) == []


def test_the_rest_is_counted() -> None:
    turns = tuple(Score(turn=i, value=0.0, reason="rude") for i in range(MOST + 3))
    assert shown(MOST + 3, Score(value=0.0, turns=turns))[-1].strip() == "… and 3 more"
