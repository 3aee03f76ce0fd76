from __future__ import annotations

from server.pages.cases import called, outcome, per_turn, turn
from vivavoce.features.compare.paired_turns import PAGE_SIZE, paired_turns, parting_turn
from vivavoce.records.score import Evidence, Score


def test_the_same_conversation_parts_nowhere() -> None:
    talk = outcome("a", [turn(0, "hi", "hello")], {"g": per_turn(1.0)})
    result = paired_turns(talk, talk)
    assert (result.parting, result.turns[0].same, result.turns[0].first) == (None, True, False)


def test_another_mark_tells_more_than_other_words() -> None:
    a = outcome("a", [turn(0, "hi", "hello"), turn(1, "x", "y")], {"g": per_turn(1.0, 1.0)})
    b = outcome("a", [turn(0, "hi", "good day"), turn(1, "x", "z")], {"g": per_turn(1.0, 0.0)})
    assert parting_turn(a, b) == 1
    assert [turn.first for turn in paired_turns(a, b).turns] == [False, True]


def test_where_marks_agree_other_words_part_them() -> None:
    a, b = outcome("a", [turn(0, "hi", "hello")]), outcome("a", [turn(0, "hi", "good day")])
    assert parting_turn(a, b) == 0


def test_another_tool_call_parts_them() -> None:
    a = outcome("a", [turn(0, "hi", "so"), turn(1, "x", *called("send", "{}", "ok"), "done")])
    b = outcome("a", [turn(0, "hi", "well"), turn(1, "x", "done")])
    result = paired_turns(a, b)
    assert result.parting == 1
    assert [turn.calls for turn in result.turns] == [False, True]


def test_a_side_that_has_ended_has_no_turn() -> None:
    a, b = outcome("a", [turn(0, "hi", "hello")]), outcome("a", [turn(0, "hi", "hello"), turn(1, "more", "yes")])
    result = paired_turns(a, b)
    assert (result.turns[1].a, result.parting, result.length) == (None, 1, 2)


def test_what_the_user_says_alike_is_said_once() -> None:
    a = outcome("a", [turn(0, "hi", "hello"), turn(1, "one", "x")])
    b = outcome("a", [turn(0, "hi", "good day"), turn(1, "two", "x")])
    first, second = paired_turns(a, b).turns
    assert [len(each.parts) for each in (first.a, first.b, second.a, second.b) if each] == [1, 1, 2, 2]
    assert (len(first.user_parts), len(second.user_parts)) == (1, 0)


def test_evidence_is_found_on_its_side_under_names_of_its_own() -> None:
    proof = Evidence(text="good day", turn=0, verified=True)
    grade = Score(value=0.0, turns=(Score(turn=0, value=0.0, other_evidence=(proof,)),))
    a, b = (
        outcome("a", [turn(0, "hi", "good day")], {"g": grade}),
        outcome("a", [turn(0, "hi", "good day")], {"g": grade}),
    )
    pair = paired_turns(a, b).turns[0]
    assert pair.a is not None
    assert pair.b is not None
    assert not pair.same, "the words of both sides stay on the page, as each is evidence"
    assert (pair.a.notes[0].quotes[0].anchor, pair.b.notes[0].quotes[0].anchor) == ("a-ev-a", "b-ev-a")
    assert (pair.a.state, pair.b.notes[0].id) == ("fail", "b-m0-t1")


def test_of_a_long_conversation_a_part_is_shown() -> None:
    long = outcome("a", [turn(i, f"ask {i}", "so") for i in range(PAGE_SIZE + 5)])
    result = paired_turns(long, long, PAGE_SIZE)
    assert ([turn.index for turn in result.turns], result.length) == (
        list(range(PAGE_SIZE, PAGE_SIZE + 5)),
        PAGE_SIZE + 5,
    )
