"""Our own rows need no format of other tools, and without these a foreign file is refused in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Viva

Write = Callable[[Path], Path]
ROWS = [{"id": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}]
SHAREGPT = {"id": "a", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
WITHOUT = {"VIVAVOCE_WITHOUT": "formats"}
SWITCHED_OFF = "VIVAVOCE_WITHOUT=formats switches off the formats of other tools"


def write_rows(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def write_questions(folder: Path) -> Path:
    path = folder / "questions.csv"
    path.write_text("id,input\na,Hi\n")
    return path


def write_sharegpt(folder: Path) -> Path:
    path = folder / "talks.jsonl"
    path.write_text(json.dumps(SHAREGPT) + "\n")
    return path


def write_database(folder: Path) -> Path:
    path = folder / "sessions.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(100))
    return path


def write_suite(folder: Path, dataset: str) -> None:
    (folder / "bot.py").write_text("def reply(message):\n    return 'Hello'\n")
    (folder / "suite.yaml").write_text(
        f"name: s\ndataset: {dataset}\ntarget: {{kind: function, function: bot.py:reply}}\n"
        "graders:\n  greets: {kind: tool, function: contains}\ngate: {metric_key: greets, op: gte, value: 0}\n"
    )


@pytest.mark.parametrize("write", [write_rows, write_questions])
def test_rows_of_ours_are_told_without_loading_another_format(write: Write, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom vivavoce.conversations.reading import detect\n"
        f"print(detect(Path({str(write(tmp_path))!r})).name)\n"
        "print([name for name in sys.modules if name.startswith('vivavoce.features.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["vivavoce", "[]"]


def test_without_formats_rows_and_tables_of_messages_are_judged(viva_process: Viva, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("session,who,text\na,user,Hi\na,assistant,Hello\n")
    columns = ["--field", "id=session", "--field", "role=who", "--field", "content=text"]
    write_rows(tmp_path)
    for arguments in (["rows.jsonl"], [table.name, *columns]):
        done = viva_process("judge", *arguments, "--metrics", "message_count", "--quiet", **WITHOUT)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("write", [write_sharegpt, write_database])
def test_without_formats_a_foreign_file_is_refused_in_one_sentence(
    write: Write, viva_process: Viva, tmp_path: Path
) -> None:
    path = write(tmp_path)
    done = viva_process("judge", path.name, "--metrics", "message_count", **WITHOUT)
    assert done.returncode == 2
    assert SWITCHED_OFF in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_formats_a_named_format_and_a_watch_are_refused(viva_process: Viva, tmp_path: Path) -> None:
    write_sharegpt(tmp_path)
    write_suite(tmp_path, "{path: talks.jsonl, format: sharegpt}")
    for arguments in (["validate", "suite.yaml"], ["watch", "--metrics", "message_count", "--folder", ".", "--once"]):
        done = viva_process(*arguments, **WITHOUT)
        assert done.returncode == 2, arguments
        assert SWITCHED_OFF in " ".join(done.stderr.split()), arguments
        assert "Traceback" not in done.stderr
    assert (
        "No such command" in (done := viva_process("convert", "talks.jsonl", "-", **WITHOUT)).stderr or done.returncode
    )
