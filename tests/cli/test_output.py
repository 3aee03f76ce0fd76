"""What is printed of foreign text: nothing that a terminal or the log of a CI server obeys."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path

import pytest

from forked import program

from .conftest import Viva

ID = "a\x1b]0;owned\x07\x9b31m\u202eb"
HOSTILE = f"{ID}\n::error title=x::y\n ##[warning]z"
SUITE = """\
name: hostile
dataset: rows.jsonl
target: {kind: function, function: "bot.py:reply"}
graders:
  exact: {kind: tool, function: exact_match}
gate: {metric_key: exact, op: gte, value: 1.0}
"""
BOT = f"""\
def reply(message):
    if message == "break":
        raise RuntimeError({HOSTILE!r})
    return {HOSTILE!r}
"""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"^\s*::\w|##\w*\[", re.MULTILINE)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:  # pyright: ignore[reportUnusedFunction]
    rows = [
        {"id": ID, "input": "hello", "ground_truth": "x"},
        {"id": "##[error]", "input": "break", "ground_truth": "x"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (tmp_path / "suite.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "bot.py").write_text(BOT, encoding="utf-8")


def _obeyed(printed: str) -> list[str]:
    return CONTROL.findall(printed) + COMMAND.findall(printed)


@pytest.mark.parametrize("width", ["20", "53", "120"])
def test_a_run_prints_nothing_that_is_obeyed_however_its_lines_break(viva: Viva, width: str) -> None:
    for command in (
        ("run", "suite.yaml"),
        ("show",),
        ("show", "latest", ID),
        ("show", "latest", "##[error]"),
        ("compare", "latest", "latest"),
        ("compare", "latest", "latest", "--markdown"),
        ("export", "--format", "markdown"),
        ("runs",),
    ):
        done = viva(*command, COLUMNS=width)
        assert _obeyed(done.stdout + done.stderr) == []


def test_errors_print_nothing_that_is_obeyed(viva: Viva, tmp_path: Path) -> None:
    row = {"id": HOSTILE, "messages": [{"role": "user", "content": HOSTILE}]}
    (tmp_path / "bad.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(row)}\n", encoding="utf-8")
    bad = SUITE.replace("rows.jsonl", "bad.jsonl").replace("exact_match", json.dumps(HOSTILE))
    (tmp_path / "bad.yaml").write_text(bad, encoding="utf-8")
    viva("run", "suite.yaml")
    for command in (
        ("validate", "bad.yaml"),
        ("judge", "bad.jsonl", "--metrics", "sentiment_trend"),
        ("judge", "rows.jsonl", "--metrics", HOSTILE),
        ("show", "latest", HOSTILE),
        ("show", HOSTILE),
        ("export", "--format", HOSTILE),
    ):
        done = viva(*command)
        assert done.returncode == 2
        assert "owned" in done.stderr
        assert _obeyed(done.stdout + done.stderr) == []


def test_json_keeps_every_character_and_is_not_obeyed(viva: Viva) -> None:
    viva("run", "suite.yaml")
    printed = viva("show", "latest", ID, "--json").stdout
    record = json.loads(printed)
    assert record["sample_id"] == ID
    assert record["trajectory"]["turns"][0]["messages"][1]["content"] == HOSTILE
    assert _obeyed(printed) == []


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_is_exact_in_a_pipe_and_safe_on_a_terminal(viva: Viva, tmp_path: Path, form: str) -> None:
    viva("run", "suite.yaml")
    viva("export", "--format", form, "--output", "exact.file")
    exact = (tmp_path / "exact.file").read_bytes()
    command = [str(program("viva")), "export", "--format", form]
    piped = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=True).stdout
    assert piped == exact
    assert _obeyed(exact.decode().replace("\r", "")) != []
    assert _obeyed(_on_terminal(command, tmp_path).replace("\r", "")) == []


def _on_terminal(command: list[str], folder: Path) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        written = b""
        try:
            while some := os.read(ours, 65536):
                written += some
        except OSError:  # Linux says so at the end of a terminal
            pass
    os.close(ours)
    assert process.returncode == 0
    return written.decode()


POOL = """
import time
from concurrent.futures import ThreadPoolExecutor
idle, busy = ThreadPoolExecutor(1, "idle"), ThreadPoolExecutor(1, "busy")

def reply(message):
    idle.submit(len, message).result()
    busy.submit(time.sleep, 60)
    return "Hello"
"""


def test_threads_of_pools_are_waited_for_unless_they_are_busy(viva_process: Viva, tmp_path: Path) -> None:
    tmp_path.joinpath("bot.py").write_text(POOL)
    row = "{rows: [{id: a, input: Hi, ground_truth: Hello}]}"
    target = "target: {kind: function, function: 'bot.py:reply'}\n"
    graders = "graders: {says: {kind: function, function: contains}}\n"
    tmp_path.joinpath("suite.yaml").write_text(f"name: s\ndataset: {row}\n{target}{graders}")
    since = time.monotonic()
    done = viva_process("run", "suite.yaml")
    assert (done.returncode, time.monotonic() - since < 30) == (0, True)
    assert "left threads running, which are not waited for: busy_0" in done.stderr
    assert "idle" not in done.stderr


@pytest.mark.parametrize("threads", [False, True])
def test_a_target_that_prints_and_leaves_threads_spoils_nothing(
    viva_process: Viva, tmp_path: Path, threads: bool
) -> None:
    left = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), name='worker').start()\n"
    begun = "    os.write(1, b'bare')\n    subprocess.run(['echo', 'of a program'])\n"
    begun = f"def reply(message):\n    print('thinking')\n{begun}    return 'Hello'\n"
    bot = f"import os, subprocess\nprint('made')\n\n{begun}"
    tmp_path.joinpath("bot.py").write_text(bot + (left if threads else ""))
    tmp_path.joinpath("rows.jsonl").write_text('{"id": "a", "input": "Hi", "ground_truth": "Hello"}\n')
    target = "target: {kind: function, function: 'bot.py:reply'}\n"
    graders = "graders: {says: {kind: function, function: contains}}\n"
    tmp_path.joinpath("suite.yaml").write_text(f"name: s\ndataset: rows.jsonl\n{target}{graders}")
    done = viva_process("run", "suite.yaml")
    assert done.returncode == 0
    assert "made" not in done.stdout
    for printed in ("thinking", "bare", "of a program"):
        assert printed not in done.stdout
        assert printed in done.stderr
    assert "says" in done.stdout
    assert ("left threads running, which are not waited for: worker" in done.stderr) is threads
