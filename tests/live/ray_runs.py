"""Runs of `viva` with Ray, in the environment that has it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ENVIRONMENT = Path(__file__).parents[2] / ".venv-ray" / "bin"
TALKS, CONCURRENT = 600, 8
RAY = ("--engine", "ray", "--workers", "2")


def write_talks(path: Path, first: int, number: int = TALKS) -> None:
    rows = [
        {
            "id": f"r{at}",
            "messages": [{"role": "user", "content": f"Hi {at}."}, {"role": "assistant", "content": f"Hello {at}."}],
        }
        for at in range(first, first + number)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def environment() -> dict[str, str]:
    if not ENVIRONMENT.exists():
        pytest.fail("run these tests with: make live")
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return {**known, "OPENAI_API_KEY": "none", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


def begin(*arguments: str) -> subprocess.Popen[str]:
    """Begin `viva` in the test's folder, in a process group of its own."""
    command = [str(ENVIRONMENT / "viva"), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment(), stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def viva(*arguments: str) -> subprocess.CompletedProcess[str]:
    with begin(*arguments) as process:
        out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def until(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
