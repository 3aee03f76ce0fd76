"""Commands whose output is closed, whose reader stops early, whose terminal goes away, or that may open few files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

VIVA = Path(sys.executable).with_name("viva")
SUITE = """\
name: streams
dataset:
  rows: [{{id: a, input: hi, ground_truth: "{truth}"}}]
target: {{kind: function, function: "bot.py:reply"}}
graders:
  said: {{kind: tool, function: contains}}
gate: {{kind: simple, metric_key: said, op: gte, value: 0.5}}
"""
BOT = "import time\n\ndef reply(messages):\n    time.sleep({seconds})\n    return 'hello'\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path)


def write(folder: Path, truth: str = "hello", seconds: float = 0) -> Path:
    (folder / "suite.yaml").write_text(SUITE.format(truth=truth))
    (folder / "bot.py").write_text(BOT.format(seconds=seconds))
    return folder


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, in which $V is the command."""
    environment = {**os.environ, "V": str(VIVA)}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("truth", ["hello", "bye"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_run_without_streams_ends_with_the_code_of_its_gate(tmp_path: Path, truth: str, closed: str) -> None:
    done = shell(write(tmp_path, truth), f"$V run suite.yaml {closed}; echo $? > code")
    assert "Traceback" not in done.stdout + done.stderr
    assert (tmp_path / "code").read_text() == ("0\n" if truth == "hello" else "1\n")
    listed = shell(tmp_path, "$V runs list").stdout
    assert listed.count("streams-") == 1


def test_what_is_printed_never_goes_into_the_store(folder: Path) -> None:
    shell(folder, "$V run suite.yaml >&- 2>&-")
    assert (folder / ".vivavoce" / "vivavoce.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("truth", ["hello", "bye"])
def test_a_reader_that_stops_early_changes_no_exit_code(tmp_path: Path, truth: str) -> None:
    done = shell(write(tmp_path, truth), "$V run suite.yaml | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}")
    assert (done.returncode, "Traceback" in done.stderr) == (int(truth != "hello"), False)


def test_the_end_of_a_terminal_stops_a_run_in_good_order(tmp_path: Path) -> None:
    write(tmp_path, seconds=60)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a program that is started where it is ignored goes on ignoring it
    with subprocess.Popen([VIVA, "run", "suite.yaml"], cwd=tmp_path, stdout=-3, stderr=subprocess.PIPE) as running:
        store = tmp_path / ".vivavoce" / "vivavoce.db"
        while not store.exists() or "running" not in shell(tmp_path, "$V runs list").stdout:
            time.sleep(0.2)
        running.send_signal(signal.SIGHUP)
        _, complaint = running.communicate(timeout=30)
    assert running.returncode in (3, 130), complaint
    assert "interrupted" in shell(tmp_path, "$V runs list").stdout


def test_a_run_under_nohup_goes_on(tmp_path: Path) -> None:
    write(tmp_path, seconds=2)
    line = "(trap '' HUP; exec $V run suite.yaml) & sleep 1.5; kill -HUP $!; wait $!"
    assert shell(tmp_path, line).returncode == 0


def test_with_few_file_handles_fewer_conversations_are_held_at_a_time(folder: Path) -> None:
    done = shell(folder, "ulimit -n 32; $V run suite.yaml --max-concurrent 500")
    assert done.returncode == 0, done.stderr
    assert "only 32 files may be open at a time, so at most 4 conversations run at a time" in done.stderr


@pytest.mark.parametrize("command", ["run suite.yaml", "validate suite.yaml", "runs", "serve --port 0"])
def test_too_few_file_handles_are_refused_with_how_many_are_needed(folder: Path, command: str) -> None:
    done = shell(folder, f"ulimit -n 25; $V {command}")
    message = "only 25 files may be open at a time, and viva needs 26; raise it: ulimit -n 1024\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert sorted(path.name for path in folder.iterdir()) == ["bot.py", "suite.yaml"]


def test_the_fewest_file_handles_are_enough_for_a_run(folder: Path) -> None:
    done = shell(folder, "ulimit -n 26; $V run suite.yaml")
    assert (done.returncode, "at most 1 conversation runs at a time" in done.stderr) == (0, True), done.stderr


def test_files_that_use_up_all_handles_are_named_as_the_cause(folder: Path) -> None:
    (folder / "bot.py").write_text(
        "OPEN = []\n\ndef reply(messages):\n    while True:\n        OPEN.append(open(__file__))\n"
    )
    done = shell(folder, "ulimit -n 60; $V run suite.yaml")
    assert ("cannot write the output" in done.stderr, "too many files are open" in done.stderr) == (False, True)


def test_a_limit_that_the_system_lets_us_raise_is_raised(folder: Path) -> None:
    done = shell(folder, "ulimit -S -n 32; $V run suite.yaml")
    assert (done.returncode, "files may be open" in done.stderr) == (0, False)


@pytest.mark.parametrize("buffered", ["env -u PYTHONUNBUFFERED", "env PYTHONUNBUFFERED=1"])
def test_a_message_that_cannot_be_written_changes_no_exit_code(tmp_path: Path, buffered: str) -> None:
    for command in ("run nosuch.yaml", "show nosuch", "--nosuch", "nosuch", "store restore nosuch --yes"):
        for streams in ("2>/dev/full", ">/dev/full 2>/dev/full"):
            assert shell(tmp_path, f"{buffered} $V {command} {streams}").returncode == 2, (command, streams)
