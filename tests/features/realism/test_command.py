from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Viva
from features.realism.talks import users

SUITE = """\
name: talks
dataset: rows.jsonl
target: {kind: function, function: "bot.py:reply"}
graders: {right: {kind: function, function: ascii_printable_only}}
"""
WORDY = "Hello! I hope you are doing well. I would like to kindly ask you for a refund of order {}, please."


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message: str) -> str:\n    return 'What is the number?'\n")
    Path("suite.yaml").write_text(SUITE)
    rows = [{"id": f"r{place}", "input": [WORDY.format(place), "Thank you so much!"]} for place in range(30)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    talks = [
        {"id": side.name, "messages": [{"role": "user", "content": text} for text in side.messages]}
        for side in users("log", 90, words=4).sides
    ]
    Path("logs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in talks))


def test_the_latest_run_is_compared_and_its_conversations_can_be_shown(viva: Viva) -> None:
    assert viva("run", "suite.yaml", "-q").returncode == 0
    done = viva("realism", "--against", "logs.jsonl", "--embedder", "none", "-n", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("simulated users do not write like real ones: ")
    assert "a simple classifier picks the simulated one in 100% of pairs" in done.stdout
    assert "and 25 more features; --limit shows more" in lines
    command = next(line.strip() for line in lines if line.strip().startswith("viva show"))
    assert viva(*command.split()[1:]).returncode == 0


def test_terminal_markdown_and_json_say_the_same(viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    arguments = ("realism", "latest", "--against", "logs.jsonl", "--embedder", "none")
    data = json.loads(viva(*arguments, "--json").stdout)
    printed = viva(*arguments, "-n", "99").stdout, viva(*arguments, "--markdown").stdout
    for text in (" ".join(line.split()) for line in printed):
        assert data["finding"] in text
        assert f"{data['apart'][0]['right']:.0%} of pairs" in text
        for feature in data["features"]:
            assert feature["name"] in text
        assert data["least_likely"][0]["name"] in text
        assert data["kinds"][0]["example"] in text
        for note in data["notes"]:
            assert note in text


def test_users_are_fitted_and_the_next_run_is_compared_with_the_first(viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    done = viva("realism", "--against", "logs.jsonl", "--fit", "users.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("wrote users.yaml: ")
    assert "personas:" in Path("users.yaml").read_text()
    again = viva("realism", "--against", "logs.jsonl", "--fit", "users.yaml")
    assert (again.returncode, again.stderr) == (
        2,
        "users.yaml already exists and is not overwritten; name another file with --fit\n",
    )
    Path("rows.jsonl").write_text(
        "".join(json.dumps({"id": f"r{n}", "input": f"refund the lamp {n}"}) + "\n" for n in range(30))
    )
    viva("run", "suite.yaml", "-q")
    done = viva("realism", "latest", "--earlier", "latest~1", "--against", "logs.jsonl", "--embedder", "none")
    assert "came closer to real users" in done.stdout
    assert "real, held-out half: logs.jsonl" in done.stdout


def test_a_run_may_stand_for_the_logs_and_a_file_for_the_run(viva: Viva) -> None:
    viva("run", "suite.yaml", "-q")
    done = viva("realism", "logs.jsonl", "--against", "latest", "--embedder", "none")
    assert done.returncode == 0, done.stderr
    assert "real: run talks-" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--against", "none.jsonl"], "none.jsonl: there is no such file"),
        (["logs.jsonl", "--against", "."], ". is a folder"),
        (["latest", "--against", "logs.jsonl"], "no store at"),
        (["logs.jsonl", "--against", "latest", "--from", "openai"], "--from needs a file, and 'latest' is not a file"),
        (["logs.jsonl", "--against", "logs.jsonl", "--embedder", "nobody"], "embedder 'nobody'"),
    ],
)
def test_a_mistake_is_one_line(viva: Viva, arguments: list[str], complaint: str) -> None:
    done = viva("realism", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(complaint)
    assert done.stderr.count("\n") == 1
