"""Logs of Inspect become recorded conversations with their scores."""

from __future__ import annotations

import importlib
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given

from features.formats.hostile import damage
from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.conversations.reading import detect, read
from vivavoce.errors import MissingExtra
from vivavoce.features.formats import inspect_log
from vivavoce.features.formats.inspect_log import FORMAT

SAMPLE: dict[str, Any] = {
    "id": 7,
    "epoch": 2,
    "input": "Where is 1042?",
    "target": "sent",
    "messages": [
        {"id": "1", "role": "user", "content": "Where is 1042?", "source": "input"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look."}],
            "tool_calls": [{"id": "c", "function": "find", "arguments": {"n": 1042}, "type": "function"}],
            "model": "gpt-5",
        },
        {"role": "tool", "content": "attachment://abc", "tool_call_id": "c", "function": "find"},
        {"role": "assistant", "content": "It was sent."},
    ],
    "scores": {
        "includes": {"value": "C", "explanation": "It was sent.", "history": []},
        "quality": {"value": {"tone": 0.5, "polite": True}},
        "none": {"value": None},
    },
    "metadata": {"k": 1},
    "store": {},
    "events": [{"event": "model"}],
    "model_usage": {"gpt-5": {"total_tokens": 3}},
    "attachments": {"abc": "sent by post"},
}
HEADER: dict[str, Any] = {"version": 2, "status": "success", "eval": {"task": "orders", "model": "openai/gpt-5"}}
LOG: dict[str, Any] = {**HEADER, "plan": {}, "stats": {}, "samples": [SAMPLE, {**SAMPLE, "epoch": 1}]}


def _read(path: Path) -> tuple[list[dict[str, Any]], Loss]:
    loss = Loss()
    return [row for _, row in read(path, detect(path), loss)], loss


def _eval(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def _zstandard(path: Path, members: Mapping[str, bytes]) -> Path:
    """Write an archive as Inspect does by default, which the zip module of Python 3.11 cannot."""
    arrow: Any = importlib.import_module("pyarrow")
    directory, offset = b"", 0
    with path.open("wb") as file:
        for name, data in members.items():
            packed, bare = arrow.compress(data, codec="zstd", asbytes=True), name.encode()
            sizes = (zlib.crc32(data), len(packed), len(data), len(bare), 0)
            file.write(struct.pack("<4s5H3I2H", b"PK\x03\x04", 63, 0, 93, 0, 33, *sizes) + bare + packed)
            place = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 63, 63, 0, 93, 0, 33, *sizes, 0, 0, 0, 0, offset)
            directory, offset = directory + place + bare, file.tell()
        ends = (0, 0, len(members), len(members), len(directory), offset, 0)
        file.write(directory + struct.pack("<4s4H2IH", b"PK\x05\x06", *ends))
    return path


def test_a_sample_is_a_trial_with_its_scores() -> None:
    [row], loss = read_values(FORMAT, [SAMPLE])
    assert (row["id"], row["trial"], row["ground_truth"]) == ("7", 1, "sent")
    assert row["labels"] == {"includes": 1.0, "quality.tone": 0.5, "quality.polite": True}
    assert [(message["role"], message["content"]) for message in row["messages"]] == [
        *(("user", "Where is 1042?"), ("assistant", "I look."), ("tool", "sent by post")),
        ("assistant", "It was sent."),
    ]
    assert row["metadata"]["scores"]["includes"] == {"value": "C", "explanation": "It was sent."}
    assert [(entry.kind, entry.what) for entry in loss.entries()] == [
        ("aside", "events"),
        ("aside", "reasoning"),
    ]


def test_events_keep_what_is_more_than_the_messages() -> None:
    [question, called, result, answer] = SAMPLE["messages"]
    tools = [{"name": "find", "description": "Find it.", "parameters": {"type": "object"}}]
    other = {"role": "user", "content": "Is 'It was sent.' right?"}
    grade = {"role": "assistant", "content": "attachment://abc"}
    config = {"temperature": 0}
    sample: dict[str, Any] = {
        **SAMPLE,
        "output": {"model": "gpt-5", "choices": [{"message": answer, "stop_reason": "stop"}], "completion": "It was"},
        "events": [
            {"event": "sample_init", "sample": {"id": 7, "input": "Where is 1042?", "sandbox": {"type": "docker"}}},
            {
                "event": "model",
                "input": [question],
                "tools": tools,
                "output": {"choices": [{"message": called}], "usage": {"total_tokens": 3}},
                "call": {"request": {"seed": 1, "messages": [{"role": "user", "content": "Where is 1042?"}]}},
            },
            {"event": "tool", "id": "c", "arguments": {"n": 1042}, "result": result["content"], "working_time": 1.5},
            {"event": "tool", "id": "c", "arguments": {"n": 1042}, "result": "sent by mail"},
            {"event": "model", "input": [question, called, result], "tools": tools, "output": {"choices": []}},
            {"event": "model", "input": [other], "config": config, "output": {"choices": [{"message": grade}]}},
            {"event": "score", "score": {"value": "C", "explanation": "It was sent."}},
        ],
    }
    [row], loss = read_values(FORMAT, [sample])
    assert row["metadata"]["output"] == {"model": "gpt-5", "choices": [{"stop_reason": "stop"}]}
    assert row["metadata"]["events"] == [
        {"event": "sample_init", "sample": {"sandbox": {"type": "docker"}}},
        {
            "event": "model",
            "input": [],
            "tools": tools,
            "output": {"choices": [{}], "usage": {"total_tokens": 3}},
            "call": {"request": {"seed": 1, "messages": []}},
        },
        {"event": "tool", "id": "c", "working_time": 1.5},
        {"event": "tool", "id": "c", "arguments": {"n": 1042}, "result": "sent by mail"},
        {"event": "model", "input": [], "tools": [], "output": {"choices": []}},
        {
            "event": "model",
            "input": [other],
            "config": config,
            "output": {"choices": [{"message": {**grade, "content": "sent by post"}}]},
        },
        {"event": "score"},
    ]
    assert [(entry.kind, entry.what, entry.count) for entry in loss.entries()] == [
        ("repeated", "messages, calls and scores that events repeat", 9),
        ("aside", "events", 7),
        ("aside", "reasoning", 1),
    ]


def test_both_kinds_of_file_hold_the_same(tmp_path: Path) -> None:
    whole = tmp_path / "log.json"
    whole.write_text(json.dumps(LOG))
    samples = {f"samples/7_epoch_{2 - n}.json": json.dumps(LOG["samples"][n]) for n in range(2)}
    zipped_log = _eval(tmp_path / "log.eval", {**samples, "header.json": json.dumps(HEADER), "summaries.json": "[]"})
    packed = {name: text.encode() for name, text in {**samples, "header.json": json.dumps(HEADER)}.items()}
    rows = _read(whole)[0]
    assert [(row["id"], row["trial"]) for row in rows] == [("orders/7", 1), ("orders/7", 0)]
    assert _read(zipped_log)[0] == rows
    assert _read(_zstandard(tmp_path / "new.eval", packed))[0] == rows


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    text = json.dumps({**LOG, "samples": [{**SAMPLE, "scores": {"a": {"value": float("nan")}, "b": {"value": 1}}}]})
    assert "NaN" in text
    path = tmp_path / "log.json"
    path.write_text(text)
    rows, loss = _read(path)
    assert rows[0]["labels"] == {"b": 1}
    assert loss.is_lossless


def test_a_log_that_was_cut_off_has_its_header_in_the_journal(tmp_path: Path) -> None:
    path = _eval(
        tmp_path / "log.eval",
        {"_journal/start.json": json.dumps(HEADER), "samples/7_epoch_2.json": json.dumps(SAMPLE)},
    )
    assert [row["id"] for row in _read(path)[0]] == ["orders/7"]


def _problems(path: Path) -> list[str]:
    return [entry.what for entry in _read(path)[1].entries() if entry.kind == "broken"]


def test_what_cannot_be_read_in_an_archive_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    members = {"samples/a.json": "{", "samples/b.json": b"\xff", "samples/c.json": json.dumps(SAMPLE)}
    path = _eval(tmp_path / "log.eval", members)
    rows, loss = _read(path)
    assert len(rows) == 1
    assert [entry.what[:16] for entry in loss.entries() if entry.kind == "broken"] == [
        "samples/a.json: ",
        "samples/b.json c",
    ]
    path.write_bytes(path.read_bytes()[:-40])
    assert _problems(path)[0].startswith("is not a complete zip archive")
    assert _problems(_eval(tmp_path / "none.eval", {"header.json": "{}"})) == ["has no samples"]


def test_a_damaged_sample_is_told(tmp_path: Path) -> None:
    path = _zstandard(tmp_path / "log.eval", {"samples/a.json": json.dumps(SAMPLE).encode()})
    data = bytearray(path.read_bytes())
    data[60] ^= 255
    path.write_bytes(data)
    assert _problems(path)[0].startswith("samples/a.json cannot be read")


def test_an_archive_that_unfolds_without_end_is_not_unfolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_log, "_MAX_BYTES", 1000)
    path = _eval(tmp_path / "log.eval", {f"samples/{n}.json": " " * 900_000 for n in range(3)})
    assert "too large for a log" in _problems(path)[0]
    assert (
        "at most 1,000 are read" in _problems(_eval(tmp_path / "b.eval", {"samples/a.json": json.dumps("x" * 2000)}))[0]
    )


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _zstandard(tmp_path / "log.eval", {"samples/a.json": json.dumps(SAMPLE).encode()})
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="frames"):
        _read(path)


@given(damage(SAMPLE))
def test_nothing_makes_the_reader_fail(record: Any) -> None:
    read_values(FORMAT, [record, SAMPLE])
