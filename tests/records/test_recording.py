"""The format of recordings: what is read, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from vivavoce.errors import UsageError
from vivavoce.records.recording import RecordedCall, RecordedReply, read_recording, same_words

HEAD: dict[str, Any] = {"vivavoce_recording": 2, "suite": "shop", "run": "shop-1", "dataset": "d", "version": "1.0"}
END = {"kind": "end"}


def reply(turn: int = 0, message: Any = "Hi", **more: Any) -> dict[str, Any]:
    about = {"kind": "reply", "sample": "s", "target": "bot", "turn": turn, "said": message}
    return {**about, **({} if "error" in more else {"messages": [{"role": "assistant", "content": "Hello"}]}), **more}


def write(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_replies_are_read_by_row_and_trial_in_the_order_of_turns(tmp_path: Path) -> None:
    lines = [reply(0), reply(1, "Bye", error="it is down"), reply(0, trial=1), reply(0, target="other")]
    recording = read_recording(write(tmp_path / "r.jsonl", HEAD, *lines, END))
    assert recording.head.model_dump() == {"suite": "shop", "run": "shop-1", "dataset": "d", "version": "1.0"}
    conversations = recording.conversations["s"]
    assert [(conversation.target, conversation.trial, len(conversation.turns)) for conversation in conversations] == [
        ("bot", 0, 2),
        ("bot", 1, 1),
        ("other", 0, 1),
    ]
    assert [turn.error for turn in conversations[0].turns] == [None, "it is down"]
    assert [message.text for message in conversations[0].messages] == ["Hello"]


def test_a_file_of_version_1_has_results_of_tools_alone_and_no_last_line(tmp_path: Path) -> None:
    call = {"kind": "tool", "name": "look_up", "result": 1}
    recording = read_recording(write(tmp_path / "r.jsonl", {"vivavoce_recording": 1}, call))
    assert (len(recording.calls), recording.replies, recording.head.suite) == (1, [], None)


def test_a_line_is_read_back_as_it_was_written() -> None:
    parts = [{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
    lines = [
        reply(0, parts, opening=[{"role": "system", "content": "Be kind"}], usage={"input_tokens": 3, "calls": 1}),
        reply(2, state={"orders": {}}, seconds=0.25),
        reply(0, error="down"),
    ]
    for line in lines:
        reply_record = RecordedReply.model_validate(line)
        assert RecordedReply.model_validate(json.loads(reply_record.model_dump_json())) == reply_record
    call = RecordedCall(sample="s", name="a", result=None, changed_state=False)
    assert call.model_dump() == {
        "kind": "tool",
        "sample": "s",
        "name": "a",
        "arguments": {},
        "result": None,
        "changed_state": False,
    }


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([HEAD, reply()], "r.jsonl:2 is cut off: its last line is missing; write it again with viva export"),
        ([HEAD], "is cut off"),
        ([HEAD, END], "has no answers: its run has no replies and no tool calls"),
        ([HEAD, reply(1), END], "turn 2 of row 's' occurs here without turn 1"),
        ([HEAD, reply(), reply(), END], "r.jsonl:3 turn 1 of row 's' occurs here twice"),
        ([HEAD, reply(error="x", messages=[{"role": "assistant", "content": "y"}]), END], "needs either messages or"),
        ([HEAD, reply(messages=[{"role": "user", "content": "y"}]), END], "assistant and tools, got one of user"),
        ([HEAD, reply(messages=[{"role": "system", "content": "y"}]), END], "assistant and tools, got one of system"),
        ([HEAD, {**reply(), "sample": None}, END], "sample: "),
        ([HEAD, reply(-1), END], "turn: "),
        ([{**HEAD, "suite": 7}, reply(), END], "r.jsonl:1 suite: "),
        ([{"vivavoce_recording": True}, END], "is not a recording: its first line is not"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, lines: list[dict[str, Any]], problem: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_recording(write(tmp_path / "r.jsonl", *lines))
    assert problem in str(caught.value)


def test_an_empty_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is empty; create a recording with viva export RUN --format recordings"):
        read_recording(write(tmp_path / "r.jsonl"))


def test_unknown_keys_of_an_answer_are_refused() -> None:
    with pytest.raises(ValidationError):
        RecordedReply.model_validate(reply(reply="typo"))


def test_whitespace_does_not_make_words_others() -> None:
    assert same_words(" Hello\n there ", "Hello there")
    assert not same_words("Hello", "hello")
    assert same_words(None, "")
