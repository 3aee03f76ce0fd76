"""Requests and jobs that take the processor for themselves: the server answers others, and ends on request."""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from server.live import get, send
from vivavoce.client import Client
from vivavoce.server.job_work import CRASHED

from .servers import ServerProcess, server_process, soon
from .test_hung_jobs import HANGING, HOLDS_THE_INTERPRETER, TALK

PATTERNS = {"all": [{"regex": f"(a|a|{number})*$"} for number in range(60)]}
"""Each is searched for seconds in a text of one letter that ends with another."""

HOSTILE = [TALK[0], {"role": "assistant", "content": "a" * 60 + "!"}]
SUITE = """\
name: hard
dataset: {rows: [{id: a, input: hello, ground_truth: hi}]}
target: {kind: function, function: "bot.py:reply"}
graders:
  said: {kind: tool, function: contains, extractor: last_assistant}
"""
BOT = f"""\
import re

async def reply(message):
    open("called", "a").write("x")
    {HOLDS_THE_INTERPRETER}
"""


def write(folder: Path) -> None:
    (folder / "hard.yaml").write_text(SUITE)
    (folder / "bot.py").write_text(BOT)


def others_are_answered(server: ServerProcess) -> None:
    for path in ("/livez", "/readyz", "/api/v1/runs", "/api/v1/jobs", "/"):
        assert get(server.url + path).status == 200
    short = {"messages": TALK, "metrics": ["turn_count"]}
    answer = send("POST", f"{server.url}/api/v1/evaluations", short)
    assert answer.json()["results"]["turn_count"]["state"] == "scored"


def test_hard_requests_at_once_stop_neither_answers_nor_the_end(tmp_path: Path) -> None:
    body = json.dumps({"messages": HOSTILE, "metrics": ["expect"], "expect": PATTERNS}).encode()
    with server_process(tmp_path, HANGING, "60") as process, ExitStack() as clients:
        host = urlsplit(process.url)
        head = f"POST /api/v1/evaluations HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Type: application/json\r\n"
        for _ in range(8):
            client = clients.enter_context(socket.create_connection((host.hostname or "", host.port or 0)))
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        others_are_answered(process)
        os.kill(process.pid, signal.SIGTERM)
        assert process.call.wait(60) != -signal.SIGKILL


def test_a_job_that_holds_the_interpreter_holds_up_nobody_and_is_ended(tmp_path: Path) -> None:
    write(tmp_path)
    with server_process(tmp_path, HANGING, "3") as process, Client(process.url) as client:
        hard = client.submit("suite", suite="hard.yaml").record
        soon((tmp_path / "called").exists)
        others_are_answered(process)
        later = client.submit("evaluation", conversations=[{"id": "a", "messages": TALK}], metrics=["refusal"])
        assert later.wait().status == "finished"
        left = client.job(hard.id).wait()
    assert (left.status, left.detail) == ("interrupted", CRASHED)
    assert (tmp_path / "called").read_text() == "xx"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_whose_job_holds_the_interpreter(tmp_path: Path, number: signal.Signals) -> None:
    write(tmp_path)
    with server_process(tmp_path, HANGING, "60") as process:
        with Client(process.url) as client:
            client.submit("suite", suite="hard.yaml")
            soon((tmp_path / "called").exists)
        os.kill(process.pid, number)
        assert process.call.wait(60) != -signal.SIGKILL


def test_a_cancelled_job_that_does_not_end_is_killed(tmp_path: Path) -> None:
    write(tmp_path)
    with server_process(tmp_path, HANGING, "60") as process, Client(process.url) as client:
        job = client.submit("suite", suite="hard.yaml")
        soon((tmp_path / "called").exists)
        job.cancel()
        job.cancel()
        record = job.wait()
    assert (record.status, record.detail) == ("interrupted", "cancelled")
