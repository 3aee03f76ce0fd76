"""Working in parts with the real Ray, two workers, and on a real S3 server, in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vivavoce.store.store import Store
from vivavoce.testing import LoopbackServer
from vivavoce.testing.misbehaviour import status

from .ray_runs import (
    CONCURRENT,
    ENVIRONMENT,
    RAY,
    TALKS,
    begin,
    environment,
    free_port,
    listens,
    until,
    viva,
    write_talks,
)

pytestmark = pytest.mark.live


def fine(body: dict[str, Any]) -> Any:
    del body
    return {"reasoning": "Fine.", "confidence": 1, "violations": []}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(fine, delay=0.05) as server:
        yield server


def judged(server: LoopbackServer, *more: str) -> tuple[str, ...]:
    judge = ("--judge", f"{server.base_url}#judge", "--max-concurrent", str(2 * CONCURRENT))
    return ("judge", "*.jsonl", "--metrics", "safety", *judge, "--parts", "out", *more)


def asked(server: LoopbackServer) -> Counter[str]:
    return Counter(json.dumps(one.body["messages"]) for one in server.requests)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes in which actors of a process work."""
    listed = subprocess.run(["ps", "-eo", "pid,sess,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return [int(pid) for pid, session, args in rows if int(session) == process.pid and "ray::Actor" in args]


def check_once(server: LoopbackServer, number: int, lost: int) -> None:
    """Check that every conversation is in the merged run once, and that few were asked again.

    Of a worker that was killed these are the questions on their way, and answers that were not stored yet.
    """
    check_merged(number)
    times = asked(server)
    assert len(times) == number
    assert sum(times.values()) <= number + lost


def check_merged(number: int) -> None:
    """Check that every conversation is in the merged run once, with a score."""
    assert viva("merge", "out").returncode == 0
    with Store.open(".vivavoce/vivavoce.db") as store:
        (run,) = store.runs()
        assert store.counts(run.id) == (number, 0)
        assert {key.sample_id for key in store.done(run.id)} == {f"r{at}" for at in range(number)}
        states = [row.state for row in store.scores(store.grading(run.id).id)]
        assert states == ["scored"] * number


def test_workers_have_the_results_of_one_process(server: LoopbackServer) -> None:
    for at in range(4):
        write_talks(Path(f"{at}.jsonl"), at * 50, 50)
    done = viva(*judged(server, *RAY))
    assert done.returncode == 0, done.stderr
    assert "200 conversations in 4 of 4 parts" in done.stdout
    check_once(server, 200, 0)
    assert viva(*judged(server, *RAY)).returncode == 0
    assert len(server.requests) == 200


def test_a_worker_that_is_killed_loses_nothing_and_pays_nothing_twice(server: LoopbackServer) -> None:
    for at in range(2):
        write_talks(Path(f"{at}.jsonl"), at * TALKS)
    with begin(*judged(server, *RAY)) as process:
        until(lambda: len(server.requests) > TALKS // 2)
        os.kill(workers_of(process)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "1 worker died" in out
    check_once(server, 2 * TALKS, 2 * CONCURRENT)


def test_workers_that_ray_ends_for_want_of_memory_are_counted_and_their_parts_tried_again(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(2):
        write_talks(Path(f"{at}.jsonl"), at * 50, 50)
    with monkeypatch.context() as short:
        short.setenv("RAY_memory_usage_threshold", "0.001")
        short.setenv("RAY_memory_monitor_refresh_ms", "100")
        ended = viva(*judged(server, *RAY))
    assert ended.returncode == 3, ended.stderr
    assert "3 workers died over it; the last: " in ended.stdout
    assert "low on memory" in ended.stdout
    assert viva(*judged(server, *RAY)).returncode == 0
    check_once(server, 100, 6 * CONCURRENT)


def test_what_a_dead_endpoint_did_not_answer_is_asked_by_the_same_command(server: LoopbackServer) -> None:
    for at in range(2):
        write_talks(Path(f"{at}.jsonl"), at * 50, 50)
    server.answer = lambda body: fine(body) if re.search(r"Hi \d*[02468]\.", json.dumps(body)) else status(401, "dead")
    dead = viva(*judged(server, *RAY))
    assert dead.returncode == 3
    assert "with errors in 2 of 2 parts" in dead.stdout
    assert viva("merge", "out").returncode == 3
    answered = Counter({key: 1 for key in asked(server) if re.search(r"Hi \d*[02468]\.", key)})
    server.requests.clear()
    server.answer = fine
    assert viva(*judged(server, *RAY)).returncode == 0
    assert not answered & asked(server)
    check_merged(100)


def test_a_driver_that_is_killed_loses_nothing_and_pays_nothing_twice(server: LoopbackServer) -> None:
    for at in range(2):
        write_talks(Path(f"{at}.jsonl"), at * TALKS)
    with begin(*judged(server, *RAY)) as process:
        until(lambda: len(server.requests) > TALKS)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    until(lambda: not workers_of(process))
    assert viva(*judged(server, *RAY)).returncode == 0
    check_once(server, 2 * TALKS, 4 * CONCURRENT)


def test_a_limit_holds_for_all_workers_together(server: LoopbackServer) -> None:
    for at in range(2):
        write_talks(Path(f"{at}.jsonl"), at * 50, 50)
    done = viva(*judged(server, *RAY, "--max-calls", "60"))
    assert done.returncode == 3
    assert "stopped: the limit on calls or cost is reached" in done.stdout
    assert len(server.requests) == 60
    assert viva(*judged(server, *RAY)).returncode == 0
    check_once(server, 100, 0)


def test_a_wrong_suite_and_an_absent_cluster_are_told(server: LoopbackServer) -> None:
    write_talks(Path("a.jsonl"), 0, 5)
    absent = viva(*judged(server, "--engine", "ray", "--ray-address", "127.0.0.1:1"))
    assert absent.returncode == 2
    assert "--ray-address 127.0.0.1:1: no Ray cluster answers there" in absent.stderr
    wrong = viva("judge", "a.jsonl", "--metrics", "safety", "--judge", "anthropic:x", "--parts", "wrong", *RAY)
    assert wrong.returncode == 2
    assert "set the environment variable ANTHROPIC_API_KEY" in wrong.stderr


@pytest.fixture
def bucket() -> Iterator[str]:
    """Return the address of a bucket on a real S3 server, with its options."""
    port = free_port()
    options = f"?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    with subprocess.Popen(
        [str(ENVIRONMENT / "moto_server"), "-p", str(port)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            until(lambda: listens(port))
            yield "s3://talks{}" + options
        finally:
            server.terminate()


def test_files_may_be_in_s3(bucket: str, server: LoopbackServer) -> None:
    write_talks(Path("a.jsonl"), 0, 30)
    made = subprocess.run(
        [str(ENVIRONMENT / "python"), "-c", _COPY, "a.jsonl", bucket.format("")],
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    judge = ("--judge", f"{server.base_url}#judge")
    done = viva(
        "judge", bucket.format("/in/*.jsonl"), "--metrics", "safety", *judge, "--parts", bucket.format("/out"), *RAY
    )
    assert done.returncode == 0, done.stderr
    assert "30 conversations in 1 of 1 part" in done.stdout
    assert viva("merge", bucket.format("/out")).returncode == 0
    with Store.open(".vivavoce/vivavoce.db") as store:
        (run,) = store.runs()
        assert store.counts(run.id) == (30, 0)


_COPY = """
import sys
from pathlib import Path
import pyarrow.fs
from vivavoce.files.places import Folder
system, bucket = pyarrow.fs.FileSystem.from_uri(sys.argv[2])
system.create_dir(bucket)
place, _, options = sys.argv[2].partition("?")
Folder(f"{place}/in?{options}").put("a.jsonl", Path(sys.argv[1]))
"""
