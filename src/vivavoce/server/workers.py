"""Several processes that answer at one address, and a parent that looks after them.

The parent opens the socket, starts the workers, and starts another one for each that ends. It kills a worker that no
longer runs Python code, and one that does not stop in time. It answers no request itself and has no thread, so that it
can start workers at any time. Workers are in process groups of their own: Ctrl-C reaches
the parent alone, which asks them to stop. If the parent is gone, they stop by themselves.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from ctypes import c_uint
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from types import FrameType

from vivavoce.errors import VivavoceError
from vivavoce.server.event_log import log
from vivavoce.server.watchdog import SHUTDOWN_SECONDS

LOOK = 0.2
"""Seconds between two looks at the workers."""

SOON = 5.0
"""Seconds: a worker that ends sooner has failed to start."""

HANG_SECONDS = 60.0
"""Seconds after which a worker is killed in which no thread can run."""

MOST_FAILURES = 5
"""How many workers in a row may fail to start."""

Work = Callable[[int], None]
"""What a worker does until it is told to stop, by its number from 0; it must be picklable unless processes fork."""


@dataclass
class _Worker:
    """What the parent knows of a worker: its start, its pulse, and for how many looks the pulse has not changed."""

    number: int
    started: float
    pulse: c_uint
    seen: int = -1
    still: int = 0

    def is_hung(self, looks: float) -> bool:
        """Look at the pulse, and return whether it has not changed for `looks` looks.

        Looks are counted, not seconds: they do not pass while the whole machine stands still.
        """
        seen = self.pulse.value
        self.still = self.still + 1 if seen == self.seen else 0
        self.seen = seen
        return self.still > looks


@dataclass
class Workers:
    """The workers of one server; `work` is what each does.

    A worker is killed if it has not run any Python code for `hang_seconds`, or if it is still there
    `shutdown_seconds` after it was asked to stop.
    """

    work: Work
    count: int
    hang_seconds: float = HANG_SECONDS
    shutdown_seconds: float = SHUTDOWN_SECONDS
    _running: dict[BaseProcess, _Worker] = field(default_factory=dict[BaseProcess, _Worker], init=False)
    _signals: list[int] = field(default_factory=list[int], init=False)

    def run(self) -> int:
        """Keep the workers running until a signal says to stop; return the number of the signal.

        The first signal has them finish what they are answering, a second one ends them at once.

        Raises:
            VivavoceError: workers end as soon as they are started.
        """
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            self._look_after()
        finally:
            self._stop_all()
            for number, handler in before.items():
                signal.signal(number, handler)
        return self._signals[0]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._signals.append(number)

    def _look_after(self) -> None:
        failures = 0
        while not self._signals:
            while len(self._running) < self.count:
                self._start()
            connection.wait([process.sentinel for process in self._running], LOOK)
            for process in self._ended():
                worker = self._running.pop(process)
                lived = time.monotonic() - worker.started
                log("error", "worker.ended", worker=worker.number, pid=process.pid, exit_code=process.exitcode)
                failures = failures + 1 if lived < SOON else 0
                if failures >= MOST_FAILURES and not self._signals:
                    raise VivavoceError(f"{failures} workers in a row ended as soon as they were started")
            for process, worker in self._running.items():
                if worker.is_hung(self.hang_seconds / LOOK):
                    log("error", "worker.hung", worker=worker.number, pid=process.pid)
                    process.kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        pulse = context.RawValue(c_uint, 0)
        number = min(set(range(self.count)) - {worker.number for worker in self._running.values()})
        process = context.Process(
            target=_as_worker, args=(self.work, number, os.getpid(), pulse), name="vivavoce-worker"
        )
        process.start()
        self._running[process] = _Worker(number, time.monotonic(), pulse)

    def _ended(self) -> list[BaseProcess]:
        return [process for process in self._running if not process.is_alive()]

    def _stop_all(self) -> None:
        for process in self._running:
            process.terminate()
        deadline = time.monotonic() + self.shutdown_seconds
        while self._running:
            connection.wait([process.sentinel for process in self._running], LOOK)
            for process in self._ended():
                del self._running[process]
            if len(self._signals) > 1 or time.monotonic() > deadline:
                for process in self._running:
                    process.kill()


def _as_worker(work: Work, number: int, parent: int, pulse: c_uint) -> None:
    if sys.platform != "win32":
        os.setpgid(0, 0)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent, pulse), name="vivavoce-parent", daemon=True).start()
    try:
        work(number)
    except VivavoceError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _end_with(parent: int, pulse: c_uint) -> None:
    """Show the parent that Python code runs here, and end this process once the parent is gone."""
    while os.getppid() == parent:
        pulse.value = (pulse.value + 1) % 2**31
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SHUTDOWN_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
