"""`viva convert`, and the formats of others where conversations are measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Viva

CALL = {"type": "tool_use", "id": "t1", "name": "find", "input": {"order": "1042"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is 1042?"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sent"}]},
    {"role": "assistant", "content": "It is on its way."},
]
PLAIN = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a file of two conversations as Anthropic writes them, the second of them without an id."""
    path = tmp_path / "log.jsonl"
    rows = [{"id": "c1", "system": "Be kind.", "messages": MESSAGES}, {"messages": PLAIN}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_is_converted_and_says_what_is_kept_aside(viva: Viva, log: Path, tmp_path: Path) -> None:
    done = viva("convert", "log.jsonl", "rows.jsonl", "--report", "loss.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "Anthropic Messages → our own rows: 2 conversations, 7 messages in rows.jsonl",
        "kept in the metadata, where judges do not look:",
        "  1 × thinking (line 1, conversation 'c1', message 1)",
    ]
    assert [message["role"] for message in rows_of(tmp_path / "rows.jsonl")[0]["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant"),
    ]
    report = json.loads((tmp_path / "loss.json").read_text())
    assert report["lossless"] is True
    assert report["entries"][0]["what"] == "thinking"


def test_what_a_format_has_no_place_for_is_told(viva: Viva, tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "Hello.", "reasoning_content": "Greet."}
    (tmp_path / "rows.jsonl").write_text(json.dumps({"messages": [PLAIN[0], message]}))
    done = viva("convert", "rows.jsonl", "out.jsonl", "--to", "gemini")
    assert done.stderr.splitlines()[1:] == ["left out:", "  1 × 'reasoning_content' of a message (line 1, message 1)"]
    done = viva("convert", "rows.jsonl", "wire.jsonl", "--to", "openai", "--strict")
    assert (done.returncode, rows_of(tmp_path / "wire.jsonl")) == (0, [{"messages": [PLAIN[0], message]}])


def test_a_second_import_adds_only_what_is_new(viva: Viva, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text('{"id": "c1", "input": "of ours"}')  # without a line break at its end
    viva("convert", "log.jsonl", "rows.jsonl")
    before = rows_of(out)
    assert [row["id"] for row in before][:2] == ["c1", "c1-2"]
    log.write_text(log.read_text() + json.dumps({"id": "c9", "messages": PLAIN}) + "\n")
    done = viva("convert", "log.jsonl", "rows.jsonl", "--from", "anthropic")
    assert "1 added, 2 were there already\n" in done.stderr
    assert rows_of(out)[:-1] == before
    assert rows_of(out)[-1]["id"] == "c9"
    log.write_text(log.read_text().replace("Be kind.", "Be brief."))
    assert (
        "0 added, 3 were there already; changed since, not updated: 1"
        in viva("convert", "log.jsonl", "rows.jsonl").stderr
    )


def test_strict_writes_nothing_where_something_would_be_lost(viva: Viva, log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text() + "broken\n")
    done = viva("convert", "log.jsonl", "rows.jsonl", "--strict", "--report", "loss.json")
    assert done.returncode == 2
    assert "nothing was written" in done.stderr
    assert "not valid JSON" in done.stderr
    assert not (tmp_path / "rows.jsonl").exists()
    assert json.loads((tmp_path / "loss.json").read_text())["lossless"] is False
    assert viva("convert", "log.jsonl", "-", "--strict").stdout == ""


def test_what_was_converted_comes_back_through_a_pipe(viva: Viva, log: Path) -> None:
    viva("convert", "log.jsonl", "rows.jsonl")
    back = viva("convert", "rows.jsonl", "-", "--to", "anthropic")
    first, second = (json.loads(line) for line in back.stdout.splitlines())
    assert (first["system"], first["messages"], second["messages"]) == ("Be kind.", MESSAGES, PLAIN)


def test_wrong_names_are_told(viva: Viva, log: Path) -> None:
    assert "did you mean 'anthropic'?" in viva("convert", "log.jsonl", "x", "--to", "antropic").stderr
    assert "no such file" in viva("convert", "none.jsonl", "x").stderr
    assert "written only" not in viva("convert", "log.jsonl", "x", "--from", "openai").stderr


def test_a_folder_is_read_file_by_file(viva: Viva, log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("b", "a"):
        (folder / f"{name}.json").write_text(json.dumps({"id": name, "messages": MESSAGES}))
    done = viva("convert", "logs", "rows.jsonl")
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows_of(tmp_path / "rows.jsonl")] == ["a", "b"]
    assert "a.json:1, conversation 'a', message 1; b.json:1" in done.stderr


def test_conversations_are_measured_in_the_format_they_have(viva: Viva, log: Path) -> None:
    done = viva("judge", "log.jsonl", "--metrics", "refusal", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "log.jsonl is read as Anthropic Messages" in done.stderr
    assert "thinking" in done.stderr
    assert "2      0" in done.stdout


def test_a_broken_conversation_has_its_line(viva: Viva, log: Path) -> None:
    log.write_text(log.read_text() + '{"messages": [{"role": "narrator"}]}\n')
    done = viva("judge", "log.jsonl", "--metrics", "refusal")
    assert done.returncode == 2
    assert "log.jsonl:3 message 0: needs a role" in done.stderr


def test_a_suite_names_the_format_of_its_dataset(viva: Viva, log: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    text = "name: x\ndriver: replay\ndataset: {path: log.jsonl, format: FORMAT}\n"
    text += "graders: {r: {kind: metric, metric: refusal}}\n"
    suite.write_text(text.replace("FORMAT", "antropic"))
    assert "suite.yaml:3:28 dataset.format: no format 'antropic'; did you mean" in viva("validate", "suite.yaml").stderr
    suite.write_text(text.replace("FORMAT", "anthropic"))
    valid = viva("validate", "suite.yaml")
    assert valid.returncode == 0, valid.stderr
    assert "note: log.jsonl is read as Anthropic Messages" in valid.stdout


def test_columns_of_a_table_are_named(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "talk.csv").write_text("case,who,words\n1,user,Hi.\n1,bot,Hello.\n")
    columns = ("--field", "content=words", "--field", "role=who", "--field", "id=case")
    done = viva("convert", "talk.csv", "rows.jsonl", *columns)
    assert done.returncode == 0
    [row] = rows_of(tmp_path / "rows.jsonl")
    assert (row["id"], row["messages"]) == ("1", PLAIN)
    judged = viva("judge", "talk.csv", "--metrics", "refusal", *columns, "--dry-run")
    assert judged.returncode == 0, judged.stderr
    wrong = viva("convert", "talk.csv", "-", "--field", "content")
    assert (wrong.returncode, "write it as" in wrong.stderr) == (2, True)


def test_a_response_that_only_refuses_is_read_as_one(viva: Viva, tmp_path: Path) -> None:
    part = {"type": "refusal", "refusal": "I will not."}
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    (tmp_path / "r.json").write_text(json.dumps({"id": "resp", "object": "response", "output": [message]}))
    done = viva("convert", "r.json", "rows.jsonl", "--strict")
    assert done.stderr.splitlines()[0] == "OpenAI Responses → our own rows: 1 conversation, 1 message in rows.jsonl"
    [row] = rows_of(tmp_path / "rows.jsonl")
    assert row["messages"][0]["refusal"] == "I will not."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            json.dumps({"messages": [PLAIN[0], {"role": "robot", "content": "Hi."}]}),
            "message 1: needs a role: .* 'robot'",
        ),
        (json.dumps({"messages": [{"role": "User", "content": "Hi."}]}), "message 0: needs a role: .* got 'User'"),
        (json.dumps({"messages": "Hi."}), "the messages of a row are a list, not str"),
        (json.dumps({"color": "red"}), "a row needs 'messages' or 'input'"),
        (json.dumps({"messages": []}), "a row needs 'messages' or 'input'"),
        ('{"messages": [', "could not be read"),
        ("", "has no readable conversation"),
    ],
)
def test_a_file_without_a_readable_conversation_ends_with_exit_code_3(
    viva: Viva, tmp_path: Path, text: str, why: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    done = viva("convert", "rows.jsonl", "out.jsonl")
    assert done.returncode == 3
    assert re.search(why, done.stderr)
    assert "has no readable conversation, so nothing was written" in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_rows_that_can_be_read_are_written_without_those_that_cannot(viva: Viva, tmp_path: Path) -> None:
    rows = [{"messages": PLAIN}, {"messages": [{"role": "bot", "content": "Hi."}]}, {"input": "Hi."}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = viva("convert", "rows.jsonl", "out.jsonl")
    assert done.returncode == 0
    assert "got 'bot' (line 2)" in done.stderr
    assert [row.get("input") for row in rows_of(tmp_path / "out.jsonl")] == [None, "Hi."]
