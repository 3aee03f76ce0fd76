"""Rows of several sessions: one conversation whose messages say which session they are of, or a plain error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vivavoce.conversations.format import Loss, format_named
from vivavoce.errors import UsageError
from vivavoce.features.formats.conversion import Conversion, convert
from vivavoce.messages import SessionMark
from vivavoce.samples.row import read_sample
from vivavoce.samples.rows import check_samples
from vivavoce.samples.sample import Sample

ANA, BO, AGAIN = (SessionMark(number=n, user=user) for n, user in ((1, "ana"), (2, "bo"), (3, "ana")))
ROW: dict[str, Any] = {
    "sessions": [
        {"user": "ana", "input": ["I eat no meat.", "My code is 4711."], "secrets": ["4711"]},
        {"user": "bo", "input": "What is the code?", "expect": [{"not_contains": "4711"}]},
        {"user": "ana", "input": ["Hi", "What do I eat?"], "ground_truth": "no meat"},
    ]
}


def read(row: dict[str, Any], *, cells: bool = False) -> Sample:
    return read_sample(row, line=1, position=0, base=Path(), cells=cells)


def message_in_session(content: str, number: object, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content, "session": number}


def test_sessions_are_one_conversation_whose_turns_count_on() -> None:
    sample = read(ROW)
    assert [message.mark for message in sample.user_messages] == [ANA, ANA, BO, AGAIN, AGAIN]
    assert sample.marks == (ANA, BO, AGAIN)
    assert sample.users == ["ana", "bo"]
    assert sample.ground_truth == [None, None, None, None, "no meat"]
    assert sample.expect == [None, None, {"not_contains": "4711"}, None, None]
    assert sample.secrets == {"ana": ["4711"]}


def test_what_is_stored_of_a_row_reads_as_the_same_sample() -> None:
    assert read(json.loads(read(ROW).row_text())) == read(ROW)


def test_a_table_holds_sessions_as_json() -> None:
    assert read({"sessions": json.dumps(ROW["sessions"])}, cells=True) == read(ROW)


def test_a_recorded_session_may_begin_with_what_the_assistant_says() -> None:
    first = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    back = [{"role": "assistant", "content": "Welcome back"}, {"role": "user", "content": "c"}]
    sample = read({"sessions": [{"messages": first}, {"messages": back, "ground_truth": ["x"]}]})
    assert sample.turn_count == 2
    assert [[message.text for message in turn.messages or ()] for turn in sample.turns] == [
        ["a", "b"],
        ["Welcome back", "c"],
    ]


def test_one_session_is_a_conversation_like_any_other() -> None:
    assert check_samples([{"sessions": [{"user": "ana", "input": "a"}]}]).returning == 0
    assert check_samples([ROW]).returning == 1


@pytest.mark.parametrize("row", [{"input": "a", "sessions": 3}, {"input": "a", "session": "s1"}])
def test_what_a_row_of_others_calls_so_stays_in_the_metadata(row: dict[str, Any]) -> None:
    sample = read(row)
    assert sample.marks == ()
    assert sample.metadata == {key: value for key, value in row.items() if key != "input"}


def test_a_message_of_others_may_have_a_session_that_is_no_mark() -> None:
    sample = read({"messages": [message_in_session("a", "s1"), message_in_session("b", "s2")]})
    assert sample.marks == ()
    assert sample.messages is not None
    assert sample.messages[0].to_wire()["session"] == "s1"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"sessions": []}, "'sessions' is empty; list one conversation or more"),
    ({"sessions": "x"}, "'sessions' is a str"),
    ({"sessions": [3]}, "session 1 is a int; write an object"),
    ({"sessions": [{"user": "a"}]}, "session 1 is empty; add 'input'"),
    ({"sessions": [{"input": []}]}, "session 1 is empty"),
    ({"sessions": [{"input": "a", "messages": []}]}, "session 1 has both 'input' (to send) and 'messages'"),
    ({"sessions": [{"input": "a"}], "input": "x"}, "a row with 'sessions' cannot have its own 'input'"),
    ({"sessions": [{"input": "a"}], "ground_truth": "x"}, "cannot have its own 'ground_truth'"),
    ({"sessions": [{"input": "a"}], "expect": [None]}, "has 'expect' either as a list of turns in a session"),
    ({"sessions": [{"input": "a", "grund_truth": 1}]}, "unknown key 'grund_truth'; did you mean 'ground_truth'"),
    ({"sessions": [{"input": ["a", "b"], "ground_truth": ["x"]}]}, "session 1 has 2 turns and ground_truth has 1"),
    ({"sessions": [{"input": "a", "expect": {"all": []}}]}, "'expect' is a list with an entry for each turn"),
    ({"sessions": [{"user": "Ana", "input": "a"}, {"user": "ana", "input": "b"}]}, "only in case, spaces, or encoding"),
    ({"sessions": [{"user": "Ana", "input": "a"}, {"input": "b"}]}, "session 2 has no 'user', but others have"),
    ({"sessions": [{"user": " ", "input": "a"}]}, "a 'user' is a name of one line"),
    ({"sessions": [{"user": ["a"], "input": "a"}]}, "'user' is a name, got"),
    (
        {"sessions": [{"input": "a"}, {"messages": [message_in_session("b", None)]}]},
        "use the same key in all sessions",
    ),
    ({"sessions": [{"messages": [message_in_session("b", None, "assistant")]}]}, "session 1 has no user message"),
    ({"sessions": [{"input": [message_in_session("b", None, "assistant")]}]}, "'input' must be user messages, got"),
    ({"sessions": [{"input": "a", "secrets": ["x"]}]}, "has 'secrets' but no 'user'"),
    ({"sessions": [{"user": "a", "input": "a", "secrets": [1]}]}, "'secrets' must be a list of texts"),
    ({"input": "a", "secrets": {"bo": ["x"]}}, "secrets name the user 'bo', but no session has this user"),
    (
        {"messages": [message_in_session("a", {"number": 1}), message_in_session("b", None)]},
        "message 1 has no 'session', but others have",
    ),
    ({"messages": [message_in_session("a", {"number": 2})]}, "the first session has number 2"),
    (
        {"messages": [message_in_session("a", {"number": 1}), message_in_session("b", {"number": 3})]},
        "session 3 follows session 1",
    ),
    ({"messages": [message_in_session("a", {"number": 0})]}, "has an invalid session"),
    (
        {
            "messages": [
                message_in_session("a", {"number": 1, "user": "a"}),
                message_in_session("b", {"number": 1, "user": "b"}),
            ]
        },
        "session 1 has two users, 'a' and 'b'",
    ),
]


@pytest.mark.parametrize(("row", "rule"), REFUSED)
def test_a_row_whose_sessions_do_not_fit_says_why_in_one_line(row: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(row)
    assert rule in str(refused.value)
    assert "\n" not in str(refused.value)


def write_row(row: dict[str, Any], name: str, folder: Path) -> tuple[Conversion, str, list[str]]:
    source, out, loss = folder / "rows.jsonl", folder / "out.jsonl", Loss()
    source.write_text(json.dumps(row) + "\n")
    out.unlink(missing_ok=True)
    done = convert(source, out, format_named(name), loss)
    return done, out.read_text(), list(loss.lines())


RECORDED = {"sessions": [{"user": user, "messages": [message_in_session("hi", None)]} for user in ("ana", "bo")]}


def test_recorded_sessions_are_written_in_formats_that_keep_keys_and_told_where_one_does_not(tmp_path: Path) -> None:
    done, text, lost = write_row(RECORDED, "openai", tmp_path)
    assert (done.messages, '"session":{"number":2,"user":"bo"}' in text, lost) == (2, True, [])
    _, text, lost = write_row(RECORDED, "sharegpt", tmp_path)
    assert "session" not in text
    assert any("2 × 'session' of a message" in line for line in lost)


def test_sessions_that_were_never_held_are_told_as_left_out(tmp_path: Path) -> None:
    assert any("row without a recorded conversation" in line for line in write_row(ROW, "openai", tmp_path)[2])
