"""Servers that end with work accepted: every job goes on by itself in the next one, and none is done twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forked import kill, program
from vivavoce.client import Client
from vivavoce.server.job_record import JobRecord
from vivavoce.server.job_work import CRASHED
from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer

SLOW = """\
name: slow
dataset: {{rows: [{rows}]}}
target: {{kind: http, url: "{url}/", body: {{said: "{{{{ message }}}}"}}, reply: said}}
graders:
  said: {{kind: tool, function: contains, extractor: last_assistant}}
max_concurrent: 1
"""
TALK = [{"role": "user", "content": "What do you offer?"}, {"role": "assistant", "content": "We offer auto."}]
JOBS = 7
ROWS = 60
"""Conversations of a job, enough that it is at work until all have begun."""


@contextmanager
def serve(folder: Path, *called: str) -> Generator[tuple[subprocess.Popen[str], Client]]:
    """Serve a folder by `viva`, or by another program that takes its arguments."""
    command = [*(called or (str(program("viva")),)), "serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        match = re.search(r"at (http://\S+)", line := process.stderr.readline())
        assert match is not None, line
        with Client(match[1]) as client:
            yield process, client
    finally:
        kill(process)
        process.stderr.close()


@contextmanager
def slow_suite(folder: Path, rows: int) -> Generator[LoopbackServer]:
    with LoopbackServer(lambda body: {"said": "hi"}) as bot:
        bot.delay = 0.1
        listed = ", ".join(f"{{id: s{n}, input: hello, ground_truth: hi}}" for n in range(rows))
        (folder / "slow.yaml").write_text(SLOW.format(rows=listed, url=bot.url))
        yield bot


def begin(client: Client) -> list[JobRecord]:
    """Begin more jobs than are at work at a time, the last of which brings its own conversations."""
    records = [client.submit("suite", key=f"k{n}", suite="slow.yaml").record for n in range(JOBS - 1)]
    rows = [{"id": f"t{n}", "messages": TALK} for n in range(3)]
    return [*records, client.submit("evaluation", key="k", conversations=rows, metrics=["refusal"]).record]


def wait_for(folder: Path, conversations: int) -> None:
    """Wait until so many conversations of some run are stored, so that the server ends in the middle of work."""
    with Store.open(str(folder / ".vivavoce" / "vivavoce.db")) as store:
        while not any(store.counts(run.id)[0] >= conversations for run in store.runs()):
            time.sleep(0.02)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_every_accepted_job_is_done_in_the_end_and_no_conversation_twice(
    tmp_path: Path, ending: signal.Signals
) -> None:
    with slow_suite(tmp_path, rows=ROWS) as bot:
        with serve(tmp_path) as (process, client):
            begun = begin(client)
            wait_for(tmp_path, 2)
            if ending == signal.SIGKILL:
                kill(process)
            else:
                process.send_signal(ending)
                process.wait()
        bot.delay = 0.0
        with serve(tmp_path) as (process, client):
            again = client.submit("suite", key="k5", suite="slow.yaml")
            assert (again.id, again.record.over) == (begun[5].id, False)
            ended = [client.job(one.id).wait() for one in begun]
    assert [(one.id, one.status, one.detail) for one in ended if one.status != "finished"] == []
    assert [one.done for one in ended] == [ROWS] * (JOBS - 1) + [3]
    with Store.open(str(tmp_path / ".vivavoce" / "vivavoce.db")) as store:
        assert {store.run(str(one.run)).status for one in ended} == {"finished"}
        assert [store.counts(str(one.run))[0] for one in ended] == [ROWS] * (JOBS - 1) + [3]
        assert len({one.run for one in ended}) == JOBS


def test_what_somebody_cancelled_stays_cancelled_however_the_server_ends(tmp_path: Path) -> None:
    with slow_suite(tmp_path, rows=ROWS) as bot:
        with serve(tmp_path) as (process, client):
            begun = begin(client)
            wait_for(tmp_path, 1)
            bot.delay = 60
            for one in (begun[0], begun[5]):  # one at work, one that waits
                client.job(one.id).cancel()
            kill(process)
        bot.delay = 0.0
        with serve(tmp_path) as (process, client):
            ended = [client.job(one.id).wait() for one in begun]
    assert [one.status for one in ended] == ["interrupted", *["finished"] * 4, "interrupted", "finished"]
    assert [ended[0].detail, ended[5].detail] == ["cancelled", "cancelled"]


def deadly_suite(folder: Path) -> None:
    """Replace the bot of the slow suite by one that ends the process that calls it."""
    (folder / "bot.py").write_text("import os\ndef reply(message):\n    os._exit(9)\n")
    suite = (folder / "slow.yaml").read_text()
    deadly = re.sub(r"target: .*", 'target: {kind: function, function: "bot.py:reply"}', suite)
    (folder / "deadly.yaml").write_text(deadly)


def test_a_job_is_not_continued_after_two_crashes_and_does_not_hurt_its_neighbors(tmp_path: Path) -> None:
    with slow_suite(tmp_path, rows=6):
        deadly_suite(tmp_path)
        with serve(tmp_path) as (process, client):
            neighbors = [client.submit("suite", suite="slow.yaml").record for _ in range(2)]
            wait_for(tmp_path, 1)
            record = client.submit("suite", suite="deadly.yaml").record
            left = client.job(record.id).wait()
            ended = [client.job(neighbor.id).wait() for neighbor in neighbors]
            assert process.poll() is None
    assert (left.status, left.detail) == ("interrupted", CRASHED)
    assert [(one.status, one.done) for one in ended] == [("finished", 6)] * 2
    with Store.open(str(tmp_path / ".vivavoce" / "vivavoce.db")) as store:
        row = store.jobs.get(record.id)
    assert row is not None
    assert (row.request, row.starts) == (None, 2)


def test_a_clean_stop_is_not_a_crash(tmp_path: Path) -> None:
    with slow_suite(tmp_path, rows=12):
        with serve(tmp_path) as (process, client):
            record = client.submit("suite", suite="slow.yaml").record
        for stored in (2, 4, 6):
            with serve(tmp_path) as (process, client):
                wait_for(tmp_path, stored)
                process.send_signal(signal.SIGINT)
                process.wait()
        with serve(tmp_path) as (_, client):
            assert client.job(record.id).wait().status == "finished"


def test_the_limit_of_a_job_counts_what_it_cost_before_the_restart(tmp_path: Path) -> None:
    with slow_suite(tmp_path, rows=40) as bot:
        with serve(tmp_path) as (process, client):
            record = client.submit("suite", suite="slow.yaml", max_calls=20).record
            wait_for(tmp_path, 5)
            process.send_signal(signal.SIGINT)
            process.wait()
        bot.delay = 0.0
        with serve(tmp_path) as (process, client):
            ended = client.job(record.id).wait()
        assert (ended.status, ended.done) == ("interrupted", 20)
        assert len(bot.requests) <= 20 + 3


def test_the_file_of_a_job_is_for_nobody_else(tmp_path: Path) -> None:
    with serve(tmp_path) as (_, client):
        rows = [{"id": "t", "messages": TALK}]
        record = client.submit("evaluation", conversations=rows, metrics=["refusal"]).wait()
    file = tmp_path / ".vivavoce" / "jobs" / f"{record.id}.jsonl"
    assert os.stat(file).st_mode & 0o077 == 0
