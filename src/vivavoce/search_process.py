"""A process for searches that cannot be interrupted: the system kills it where a search takes too long.

The library of regular expressions looks at the time between its steps. Before the first step it prepares a long text of
a pattern in a time that grows with the third power of its length, and one step may compare the whole pattern at each
character of a text. So a search whose pattern and text are large is carried out here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Literal, cast

from vivavoce.work_time import charge_work

GRACE_SECONDS = 0.5
"""Seconds after the limit of a search in which the library may notice the limit itself."""

START_SECONDS = 30.0
"""Seconds for the start of the process and the preparation of a pattern; only systems without timers wait so long."""

SearchKind = Literal["search", "fullmatch", "finditer"]


class SearchProcess:
    """The process, seen from the one that searches; safe for use from any thread, one search at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def search(self, pattern: str, kind: SearchKind, text: str, group: int, seconds: float) -> Any:
        """Return what a pattern finds: whether it matches, or the texts of a group.

        Raises:
            TimeoutError: the search takes longer than the seconds, or its process ended.
            MemoryError: the search needs too much memory.
        """
        order = json.dumps([pattern, kind, text, group, seconds]).encode("ascii") + b"\n"
        began = time.monotonic()
        try:
            with self._lock:
                began = time.monotonic()  # those who wait for others do not pay for that
                reply = self._exchange(order, seconds)
        finally:
            charge_work(time.monotonic() - began)
        if "problem" in reply:
            raise MemoryError if reply["problem"] == "memory" else TimeoutError
        return reply["result"]

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # it has not read all of what was written
                        pipe.close()
            process.wait()

    def _exchange(self, order: bytes, seconds: float) -> dict[str, Any]:
        """Send an order and return the reply; leave no process that owes one."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds + START_SECONDS, process.kill)
        timer.daemon = True
        if not hasattr(signal, "setitimer"):
            timer.start()
        try:
            process.stdin.write(order)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # it is gone
            line = b""
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            self.close()
            return {"problem": "time"}
        return cast("dict[str, Any]", json.loads(line))


def _start() -> subprocess.Popen[bytes]:
    code = f"import sys; sys.path[:] = {sys.path!r}; from vivavoce.search_process import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


_processes: dict[int, SearchProcess] = {}
"""The search process of this process, by the id of the process: one that was forked needs its own."""


def search_in_process(pattern: str, kind: SearchKind, text: str, group: int, seconds: float) -> Any:
    """Search in the process that belongs to this one.

    Raises:
        TimeoutError: the search takes longer than the seconds, or its process ended.
        MemoryError: the search needs too much memory.
    """
    return _processes.setdefault(os.getpid(), SearchProcess()).search(pattern, kind, text, group, seconds)


def main() -> None:
    """Carry out searches until nobody orders any more; the system ends this process where one takes too long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the process that orders searches
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(json.dumps(_carry_out(*json.loads(line))).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()


def _carry_out(pattern: str, kind: SearchKind, text: str, group: int, seconds: float) -> dict[str, Any]:
    import regex

    try:
        compiled = regex.compile(pattern)
        _set_timer(seconds + GRACE_SECONDS)
        if kind == "finditer":
            matches = compiled.finditer(text, timeout=seconds)
            return {"result": [match.group(group) or "" for match in matches]}
        return {"result": getattr(compiled, kind)(text, timeout=seconds) is not None}
    except TimeoutError:
        return {"problem": "time"}
    except MemoryError:
        return {"problem": "memory"}
    finally:
        _set_timer(0.0)


def _set_timer(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
