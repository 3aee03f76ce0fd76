"""Functions for processes of their own: they never end, end badly, or need much."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from vivavoce.errors import NotFound
from vivavoce.server.processes import Channel, answering


def _hold_the_interpreter() -> None:
    re.match("(a+)+$", "a" * 64 + "b")


def _crash() -> None:
    os._exit(3)


def _allocate(size: int) -> int:
    return len(bytearray(size))


def _surroundings() -> dict[str, Any]:
    return {"folder": os.getcwd(), "color": os.environ.get("COLOR"), "path": sys.path}


def _out_of_memory_score() -> int:
    return int(Path("/proc/self/oom_score_adj").read_text())


def _refuse() -> None:
    raise NotFound("suite", "x.yaml", within="the served folder")


def begin_another(channel: Channel) -> None:
    """Start a program that outlives this process unless somebody ends it, send its id, and wait."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    channel.send((os.getpid(), other.pid))
    channel.receive()


def begin_another_and_hold_the_interpreter(channel: Channel) -> None:
    """Start a program, send its id, and hear nothing more: no other thread runs, and no signal handler."""
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    channel.send((os.getpid(), other.pid))
    _hold_the_interpreter()


hold_the_interpreter = answering(_hold_the_interpreter)
crash = answering(_crash)
allocate = answering(_allocate)
surroundings = answering(_surroundings)
out_of_memory_score = answering(_out_of_memory_score)
refuse = answering(_refuse)
