"""The starter of `processes`: it loads what tasks need, waits for commands, and forks for each task."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, cast

from vivavoce.models.modes import CAPABILITIES
from vivavoce.plugins import lazy
from vivavoce.server.process_app import load_metrics
from vivavoce.server.processes import COMMAND_BYTES, REPLY_BYTES, Channel, Task, end_with_parent, limit_process

NICENESS = 5
"""How much tasks leave the processor to the server, which answers others meanwhile."""
LOADED = ("vivavoce.server.job_process:run_job", "vivavoce.server.job_process:check", "uvloop:install")
"""What most tasks need, which is imported once."""


def main(descriptor: int) -> None:
    """Carry out commands until the server is gone; then kill all tasks."""
    os.nice(NICENESS)
    for reference in LOADED:
        with suppress(ImportError):  # uvloop need not be there
            lazy(reference)
    load_metrics()
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=descriptor)
    children: set[int] = set()
    try:
        while command := _next_command(control):
            letter, pid, task = command
            control.sendall(_carry_out(letter, pid, task, control, children).to_bytes(REPLY_BYTES, "big", signed=True))
    except OSError:  # the server is gone
        pass
    finally:
        for pid in children:
            _kill(pid)


def _next_command(control: socket.socket) -> tuple[bytes, int, int | None] | None:
    """Return the next command: its letter, the process, and the socket of a task; None at the end."""
    record, descriptors, _, _ = socket.recv_fds(control, COMMAND_BYTES, 1)
    while record and len(record) < COMMAND_BYTES:
        more = control.recv(COMMAND_BYTES - len(record))
        if not more:
            return None
        record += more
    return (record[:1], int.from_bytes(record[1:], "big"), next(iter(descriptors), None)) if record else None


def _carry_out(letter: bytes, pid: int, task: int | None, control: socket.socket, children: set[int]) -> int:
    """Return the reply to a command; a negative one is the number of an error."""
    if letter == b"F" and task is not None:
        starter = os.getpid()
        try:
            child = os.fork()
        except OSError as error:
            os.close(task)
            return -(error.errno or 1)
        if child == 0:
            control.close()
            end_with_parent(starter)
            _work(task)
        os.close(task)
        with suppress(OSError):  # the child has done so
            os.setpgid(child, child)
        children.add(child)
        return child
    if pid in children:
        _kill(pid)
        if letter == b"E":
            children.discard(pid)
            return os.waitpid(pid, 0)[1]
    return 0


def _kill(pid: int) -> None:
    """Kill a process that nobody has waited for yet, so that the id is still its own, with all that it has started."""
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _work(descriptor: int) -> NoReturn:
    """Carry out the one task of this process, and end it."""
    status = 1
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        with suppress(OSError):  # not on Linux: the system ends a task before the server where memory is short
            Path("/proc/self/oom_score_adj").write_text("1000")
        channel = Channel(descriptor)
        task = cast("Task", channel.receive())
        os.environ.clear()
        os.environ.update(task.environment)
        os.chdir(task.folder)
        sys.path[:] = task.path
        CAPABILITIES.learn(task.known)
        limit_process(task)
        lazy(task.function)(channel, *task.arguments)
        status = 0
    except EOFError:  # the server is gone
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
