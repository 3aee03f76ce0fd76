"""`viva serve`, as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import program
from vivavoce.client import Client
from vivavoce.errors import UsageError

from .conftest import Viva

BOT = """\
import asyncio

async def reply(messages):
    open("asked", "a").write("x")
    await asyncio.sleep(%s)
    return "hi"
"""
SUITE = """\
name: slow
dataset: {rows: [%s]}
target: {kind: function, function: "bot.py:reply"}
graders: {said: {kind: tool, function: contains, extractor: last_assistant}}
max_concurrent: 1
"""


@contextmanager
def serve(folder: Path, *arguments: str, **environment: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Run the command until the block ends, and give the process and its address."""
    command = [str(program("viva")), "serve", "--port", "0", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment, "COLUMNS": "200"}
    )
    assert process.stderr is not None
    try:
        found = re.search(r"at (http://\S+)", line := process.stderr.readline())
        assert found is not None, line
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_ctrl_c_ends_it_in_good_order_and_the_job_goes_on_in_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT % 0.05)
    rows = ", ".join(f"{{id: s{n}, input: hello, ground_truth: hi}}" for n in range(60))
    (tmp_path / "slow.yaml").write_text(SUITE % rows)
    with serve(tmp_path) as (process, url), Client(url) as client:
        job = client.submit("suite", suite="slow.yaml")
        events = job.events()
        while next(events).kind != "graded":
            pass
        process.send_signal(signal.SIGINT)
        ended = list(events)[-1].job
        assert ended is not None
        assert (ended.status, 0 < ended.done < 60) == ("interrupted", True)
        assert process.wait(30) == 0
    with serve(tmp_path) as (_, url), Client(url) as client:
        again = client.job(job.id).wait()
    assert (again.status, again.done, again.run) == ("finished", 60, ended.run)
    assert len((tmp_path / "asked").read_text()) == 60


def test_who_follows_a_job_hears_of_its_end_also_where_the_last_answer_takes_its_time(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(BOT % 1.5)
    (tmp_path / "slow.yaml").write_text(SUITE % "{id: a, input: hello, ground_truth: hi}, {id: b, input: hello}")
    with serve(tmp_path) as (process, url), Client(url) as client:
        events = client.submit("suite", suite="slow.yaml").events()
        while next(events).kind != "started":
            pass
        process.send_signal(signal.SIGINT)
        ended = list(events)[-1].job
        assert ended is not None
        assert (ended.status, ended.done) == ("interrupted", 1)


def test_a_token_is_asked_for_where_one_is_set(tmp_path: Path) -> None:
    with serve(tmp_path, VIVAVOCE_TOKEN="opensesame") as (_, url):
        with Client(url) as client, pytest.raises(UsageError, match="a token is required"):
            client.run()
        with Client(url, "opensesame") as client:
            assert list(client.runs()) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_an_address_that_others_reach_is_not_served_without_a_token(viva: Viva, host: str) -> None:
    done = viva("serve", "--host", host, "--port", "0")
    assert (done.returncode, "VIVAVOCE_TOKEN" in done.stderr) == (2, True)


def test_a_port_that_is_taken_is_said_to_be(viva: Viva, tmp_path: Path) -> None:
    with serve(tmp_path) as (_, url):
        done = viva("serve", "--port", url.rstrip("/").rpartition(":")[2])
    assert (done.returncode, "cannot listen" in done.stderr) == (2, True)
