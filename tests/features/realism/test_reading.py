from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.features.realism.reading import spoken_in_file, spoken_in_run
from vivavoce.store.store import Store
from vivavoce.suites.experiment import run_suite

SUITE = """\
name: talks
dataset: {rows: [{id: a, input: ["Hi there", "Again"]}, {id: b, input: fail}]}
trials: 2
target: {kind: function, function: "bot.py:reply"}
graders: {right: {kind: function, function: ascii_printable_only}}
"""
BOT = """\
def reply(message):
    if message == "fail":
        raise ValueError("no")
    return "Hello"
"""


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_has_no_user_is_left_out_and_counted(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]},
        {"id": "b", "messages": [{"role": "assistant", "content": "Anybody there?"}]},
        {"id": "c", "input": "never held"},
    ]
    sides = spoken_in_file(write(tmp_path / "logs.jsonl", rows))
    assert [side.name for side in sides.sides] == ["a"]
    assert [note.split(": ", 1)[1] for note in sides.notes] == [
        "left out: 1 conversation without user text",
        "left out: 1 conversation without recorded messages",
    ]


def test_other_formats_are_read_and_trials_are_one_sample(tmp_path: Path) -> None:
    talk = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
    sides = spoken_in_file(write(tmp_path / "logs.jsonl", [talk]))
    assert sides.sides[0].messages == ("Hi",)
    assert "is read as" in sides.notes[0]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "it is empty"),
        ([{"id": "a", "messages": [{"role": "assistant", "content": "x"}]}], "1 conversation without user text"),
    ],
)
def test_a_file_without_users_is_told_in_one_line(tmp_path: Path, rows: list[dict[str, object]], why: str) -> None:
    with pytest.raises(UsageError, match=f"no user message to compare: {why}"):
        spoken_in_file(write(tmp_path / "logs.jsonl", rows))


def test_a_file_of_users_alone_says_that_answers_are_missing(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"id": str(place), "messages": [{"role": "user", "content": "Hi"}]} for place in range(3)
    ]
    (note,) = spoken_in_file(write(tmp_path / "logs.jsonl", rows)).notes
    assert "3 of 3 conversations have only user messages" in note


def test_a_run_is_read_without_what_ended_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text(BOT)
    Path("suite.yaml").write_text(SUITE)
    run_suite("suite.yaml")
    with Store.open(".vivavoce/vivavoce.db") as store:
        sides = spoken_in_run(store, "latest")
    assert [side.name for side in sides.sides] == ["a", "a#2"]
    assert {side.cluster for side in sides.sides} == {"a"}
    assert sides.run is not None
    assert sides.notes[0].endswith("left out: 2 conversations that ended with an error")
