"""Jobs that never end: they hold up neither the jobs after them nor the end of their server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vivavoce.client import Client
from vivavoce.server.job_work import CRASHED

from .servers import server_process, soon

HOLDS_THE_INTERPRETER = 're.match("(a+)+$", "a" * 64 + "b")'
"""An expression during which no other thread and no signal handler of the process runs."""

HANGING = """\
import os, sys
from pathlib import Path
from vivavoce.server import job_work
from vivavoce.server.policy import ServerPolicy
from vivavoce.server.serving import serve
from vivavoce.store.store import Store

job_work.GRACE = job_work.CANCEL_GRACE = 0.1
print(os.getpid(), flush=True)
with Store.open("kept.db") as store:
    serve(
        store, "127.0.0.1", 0, policy=ServerPolicy(Path.cwd(), hang_seconds=float(sys.argv[1])),
        started=lambda url: print(url, flush=True),
    )
"""
SUITE = """\
name: hanging
dataset: {rows: [{id: a, input: hello, ground_truth: hi}]}
target: {kind: function, function: "bot.py:reply"}
graders:
  said: {kind: tool, function: contains, extractor: last_assistant}
"""
BOT = """\
import time
from pathlib import Path

async def reply(message):
    with open("called", "a") as file:
        file.write("x")
    time.sleep(3600)
"""
TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]


def write(folder: Path) -> None:
    (folder / "hanging.yaml").write_text(SUITE)
    (folder / "bot.py").write_text(BOT)


def calls(folder: Path) -> int:
    path = folder / "called"
    return len(path.read_text()) if path.exists() else 0


def test_a_job_that_blocks_its_thread_is_taken_once_more_and_later_jobs_run(tmp_path: Path) -> None:
    write(tmp_path)
    with server_process(tmp_path, HANGING, "2") as process, Client(process.url) as client:
        record = client.submit("suite", suite="hanging.yaml").record
        soon(lambda: calls(tmp_path) == 1)
        later = client.submit("evaluation", conversations=[{"id": "a", "messages": TALK}], metrics=["refusal"])
        assert later.wait().status == "finished"
        left = client.job(record.id).wait()
    assert (left.status, left.detail) == ("interrupted", CRASHED)
    assert calls(tmp_path) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_whose_job_blocks_its_thread(tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path)
    with server_process(tmp_path, HANGING, "60") as process:
        with Client(process.url) as client:
            client.submit("suite", suite="hanging.yaml")
            soon(lambda: calls(tmp_path) == 1)
        os.kill(process.pid, number)
        assert process.call.wait(60) != -signal.SIGKILL


WATCHED = f"""\
import re, signal
from vivavoce.server.workers import killed_after_signal

signal.signal(signal.SIGTERM, lambda *_: None)
with killed_after_signal(0.5):
    print("ready", flush=True)
    {HOLDS_THE_INTERPRETER}
"""


def test_a_process_whose_interpreter_is_held_is_killed_after_a_signal() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WATCHED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGKILL
        assert "did not stop within 0.5 seconds" in process.stderr.read()


WORKERS = f"""\
import os, re, sys, time
from vivavoce.server.workers import Workers

def work(number):
    with open("started", "a") as file:
        file.write("x")
    if os.path.getsize("started") == 1:
        {HOLDS_THE_INTERPRETER}
    signal_ignored()

def signal_ignored():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        time.sleep(0.1)

print(Workers(work, 1, hang_seconds=1.0, shutdown_seconds=1.0).run())
"""


def test_a_worker_that_hangs_is_replaced_and_one_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WORKERS], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert (tmp_path / "started").read_text() == "xx"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == "15\n"
