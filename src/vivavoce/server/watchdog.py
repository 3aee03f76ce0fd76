"""A small process that kills a server that does not stop in time.

User code may keep the interpreter busy, so that no thread and no signal handler of the server runs. The C code of the
interpreter still writes each signal to a pipe, and the other end of the pipe belongs to this process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

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
