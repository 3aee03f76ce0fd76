"""How far a run went as it was recorded, in words."""

from __future__ import annotations

from typing import Any

from vivavoce.records.details import CallsCovered, DifferentConversations, PairedGrades, RecordingSummary
from vivavoce.report.as_recorded import recorded_lines
from vivavoce.run.summary import Summary


def lines(*targets: RecordingSummary) -> list[str]:
    return recorded_lines(Summary(attempts=1, failed_attempts=0, graders=[], recording=list(targets)))


def counted(**more: Any) -> RecordingSummary:
    numbers = {"conversations": 50, "same": 41, "unrecorded": 0, "errors": 0, "turns": 200}
    return RecordingSummary.model_validate({"target": "bot", **numbers, **more})


def test_a_run_without_a_recording_says_nothing() -> None:
    assert lines() == []


def test_conversations_are_counted_by_what_became_of_them() -> None:
    assert lines(counted(unrecorded=2, errors=1)) == [
        "as recorded: 41 of 50 conversations; 2 not in the recording; 1 ended with an error before a difference"
    ]


def test_differences_are_told_with_the_earliest_one() -> None:
    six = DifferentConversations(kind="reply", conversations=6, sample="a", trial=1, turn=0, what="the reply is “x”")
    one = DifferentConversations(kind="call", conversations=1, sample="b", trial=0, turn=2, what="line\nbreak")
    assert lines(counted(different=[six, one]))[1:] == [
        "the same calls, another reply: 6 (the earliest: a#2, turn 1: the reply is “x”)",
        "other calls of tools: 1 (b, turn 3: line break)",
    ]


def test_calls_are_told_by_who_answered_them() -> None:
    calls = CallsCovered(answered=1200, live=1, missed=2, unused=7, examples=["a()", "b()"])
    assert lines(counted(calls=calls, ended=["a, turn 2"]))[1] == (
        "calls of tools: 1,200 answered from the recording, 1 answered live, 2 not in it (a, turn 2; …), "
        "7 recorded and not made: a(), b() and 5 more"
    )


def test_grades_are_told_side_by_side() -> None:
    about: dict[str, Any] = {"grader": "says", "of": "turn", "recorded": 0.9, "new": 0.8}
    equal = PairedGrades.model_validate({**about, "n": 1, "better": 0, "worse": 0, "p_value": 1.0})
    other = PairedGrades.model_validate({**about, "n": 9, "better": 1, "worse": 2, "p_value": 0.625, "left_out": 1})
    assert lines(counted(pairs=[equal, other]))[1:] == [
        "says, 1 comparable turn: 0 better, 0 worse, 1 the same; mean recorded 0.900, now 0.800",
        "says, 9 comparable turns, 1 without both scores: 1 better, 2 worse, 6 the same; "
        "mean recorded 0.900, now 0.800, sign test p 0.62",
    ]


def test_of_several_targets_each_is_named() -> None:
    found = lines(counted(), counted(target="other", same=50))
    assert found == ["bot: as recorded: 41 of 50 conversations", "other: as recorded: 50 of 50 conversations"]
