"""A small process that kills a server that does not stop in time.

User code may keep the interpreter busy, so that no thread and no signal handler of the server runs. The C code of the
interpreter still writes each signal to a pipe, and the other end of the pipe belongs to this process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ctypes import c_uint
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from types import FrameType

from vivavoce.errors import VivavoceError
from vivavoce.server.monitoring import log

SHUTDOWN_SECONDS = 15.0
"""Seconds that a server has to stop after the first signal; then it is killed."""

_WATCH = """
import os, select, signal, sys, time
server, seconds, numbers = int(sys.argv[1]), float(sys.argv[2]), bytes(map(int, sys.argv[3].split(",")))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while True:
    data = os.read(0, 64)
    if not data:
        sys.exit()
    if set(data) & set(numbers):
        break
deadline = time.monotonic() + seconds
while (left := deadline - time.monotonic()) > 0:
    if select.select([0], [], [], left)[0] and not os.read(0, 64):
        sys.exit()
print(f"error: the server did not stop within {seconds:g} seconds and is killed; "
      "unfinished jobs continue at the next start", file=sys.stderr, flush=True)
os.kill(server, signal.SIGKILL)
"""


@contextmanager
def killed_after_signal(seconds: float = SHUTDOWN_SECONDS) -> Generator[None]:
    """Kill this process if the block has not ended `seconds` after SIGINT, SIGTERM or SIGHUP.

    Outside the main thread, and on Windows, nothing is watched.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    numbers = ",".join(str(int(number)) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    command = [sys.executable, "-I", "-S", "-c", _WATCH, str(os.getpid()), str(seconds), numbers]
    process = subprocess.Popen(command, stdin=reader, stdout=subprocess.DEVNULL, start_new_session=True)
    os.close(reader)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        process.wait()


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
