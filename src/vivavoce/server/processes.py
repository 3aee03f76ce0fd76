"""Processes in which a server does work that may never end: each does one task, and can be killed at any time.

A process that has loaded what tasks need, the starter, forks for each task, so that a task begins within milliseconds.
The starter has no threads and no connections. It ends with the process that started it, and kills the tasks first.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, cast

from vivavoce.errors import StoreError, UsageError, VivavoceError
from vivavoce.models.modes import CAPABILITIES, KnownCapabilities

KILL_SECONDS = 60
"""Processor seconds of a request, in all threads of its process, after which the process is killed."""

MAX_BYTES = 4 * 2**30
"""Memory of the process of a request; what asks for more is an error."""

SUITE_MEMORY_SHARE = 0.5
"""The part of the machine's memory that a job of a suite may use, where that is more than MAX_BYTES.

A suite is a file of the served folder, which may load a model of its own."""

FIRST_TO_END = "1000"
"""The number by which Linux knows what to end first when memory runs out: the highest there is."""

COMMAND_BYTES = 9
"""The length of a command to the starter: a letter, and the id of a process."""

REPLY_BYTES = 8

_SESSION_FIELD = 3
"""The place of the session in what `/proc/…/stat` has after the name of a process."""
_PR_SET_PDEATHSIG = 1
"""The request to Linux for a signal at the end of the parent."""

T = TypeVar("T")
Command = Literal[b"F", b"K", b"E"]
"""Fork for the socket that comes with the command, kill a process, or end it and reply with its exit status."""


class Channel:
    """One end of the connection between a server and a process; several threads may send."""

    def __init__(self, descriptor: int) -> None:
        self._connection: Connection[Any, Any] = Connection(descriptor)
        self._sending = threading.Lock()

    def send(self, thing: object) -> None:
        """Send a thing to the other end.

        Raises:
            OSError: the other end is gone.
        """
        with self._sending:
            self._connection.send(thing)

    def receive(self) -> Any:
        """Wait for the next thing from the other end.

        Raises:
            EOFError: the other end is gone.
        """
        try:
            return self._connection.recv()
        except OSError as error:  # it was killed in the middle of a message, or this end is closed
            raise EOFError(str(error)) from error

    def close(self) -> None:
        """Close this end."""
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does: it calls `function`, as `module:name`, with its channel and the arguments.

    `environment`, `folder`, and `path` are those of the server at this moment. The process is killed after
    `cpu_seconds`, and cannot have more memory than `max_bytes`, where they are given.
    """

    function: str
    arguments: tuple[Any, ...]
    cpu_seconds: int | None = None
    max_bytes: int | None = None
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: str = field(default_factory=os.getcwd)
    path: list[str] = field(default_factory=lambda: list(sys.path))
    known: KnownCapabilities = field(default_factory=CAPABILITIES.snapshot)


class WorkProcess(Channel):
    """A process that works on a task, seen from the server; it ends with the block at the latest."""

    def __init__(self, task: Task) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._starter = _starter()
            self.pid = self._starter.command(b"F", descriptor=theirs.fileno())
        except OSError as error:
            ours.close()
            raise StoreError(f"cannot start a process for this request: {error.strerror or error}") from error
        finally:
            theirs.close()
        super().__init__(ours.detach())
        self._status: int | None = None
        self._ending = threading.Lock()
        with suppress(OSError):  # it is gone already, and whoever waits for an answer learns that
            self.send(task)

    def kill(self) -> None:
        """Kill the process and all that it has started."""
        with self._ending:
            if self._status is None:
                self._command(b"K")

    def end(self) -> int:
        """End the process where it still runs, and return its status as `os.waitpid` does."""
        with self._ending:
            if self._status is None:
                self._status = self._command(b"E")
                self.close()
            return self._status

    def _command(self, kind: Command) -> int:
        """Give a command about this process to the starter that forked it: another one does not know it."""
        try:
            return self._starter.command(kind, self.pid)
        except OSError:  # the starter has ended or is about to, and the process with it
            self._starter.kill_tasks_once_gone(os.WEXITED)
            return 0

    @property
    def ran_out_of_time(self) -> bool:
        """Whether the system ended it because its processor time was used up."""
        status = self.end()
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


ON_START: ContextVar[Callable[[WorkProcess], object]] = ContextVar("on_start", default=lambda _: None)
"""Gets each process that `call` starts, so that a request can kill its own."""


class TooMuchWork(UsageError):
    """A request needs more time of the processor than it may have."""


def call(task: Task) -> Any:
    """Have a process carry out a task, and return what its function returns; `ON_START` is given the process.

    Raises:
        VivavoceError: the function raised it.
        TooMuchWork: it took too long, and was killed.
        StoreError: the process could not be started, or ended early.
    """
    with WorkProcess(task) as process:
        ON_START.get()(process)
        try:
            answer = cast("Answer", process.receive())
        except EOFError:
            if process.ran_out_of_time:
                raise TooMuchWork(
                    f"this request takes more than {task.cpu_seconds} s of CPU time; send less at a time"
                ) from None
            raise StoreError("the process that worked on this request ended early; try again") from None
    CAPABILITIES.learn(answer.known)
    if answer.error is not None:
        raise answer.error
    return answer.returned


@dataclass(frozen=True, slots=True)
class Answer:
    """What the function of a task returned or raised, and what is known of endpoints of models since."""

    returned: object = None
    error: VivavoceError | None = None
    known: KnownCapabilities = field(default_factory=CAPABILITIES.snapshot)


def answering(function: Callable[..., object]) -> Callable[..., None]:
    """Make the function of a task for `call` from one that takes the arguments alone."""

    def carry_out(channel: Channel, *arguments: Any) -> None:
        try:
            answer = Answer(function(*arguments))
        except VivavoceError as error:
            answer = Answer(error=error)
        except MemoryError:
            answer = Answer(error=TooMuchWork(NO_MEMORY))
        channel.send(answer)

    return carry_out


NO_MEMORY = f"this request needs more than {MAX_BYTES // 2**30} GB of memory; send less at a time"


class _Starter:
    """The process that forks for each task, seen from the server; safe for use from any thread."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        code = f"import sys; sys.path[:] = {sys.path!r}; from vivavoce.server.process_starter import main; "
        command = [sys.executable, "-c", f"{code}main({theirs.fileno()})"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
        )
        theirs.close()
        self._commanding = threading.Lock()

    @property
    def lives(self) -> bool:
        """Whether the process is there."""
        self.kill_tasks_once_gone(os.WEXITED | os.WNOHANG)
        return self._process.poll() is None

    def kill_tasks_once_gone(self, wait_options: int) -> None:
        """Kill what is left of its tasks, and what they have started, if the process is gone; only Linux lists them."""
        if sys.platform != "linux":
            return
        with self._commanding, suppress(ChildProcessError):
            pid = self._process.pid
            if self._process.returncode is None and os.waitid(os.P_PID, pid, wait_options | os.WNOWAIT) is not None:
                _kill_session(pid)  # nobody has taken its status yet, so the number is still its own
                self._process.poll()

    def command(self, kind: Command, pid: int = 0, *, descriptor: int | None = None) -> int:
        """Give a command and return the reply.

        Raises:
            OSError: the process is gone, or cannot do it.
        """
        with self._commanding:
            record = kind + pid.to_bytes(COMMAND_BYTES - 1, "big")
            socket.send_fds(self._control, [record], [] if descriptor is None else [descriptor])
            reply = self._control.recv(REPLY_BYTES, socket.MSG_WAITALL)
        if len(reply) < REPLY_BYTES:
            raise OSError("the process that starts workers has ended")
        value = int.from_bytes(reply, "big", signed=True)
        if value < 0:
            raise OSError(-value, os.strerror(-value))
        return value

    def close(self) -> None:
        """End it and all tasks."""
        self._control.close()
        self._process.wait()


def _kill_session(leader: int) -> None:
    """Kill all processes of a session whose leader has ended."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):  # it is gone by now
            if int(status.read_text(errors="replace").rpartition(")")[2].split()[_SESSION_FIELD]) == leader:
                os.kill(int(status.parent.name), signal.SIGKILL)


_known: dict[int, _Starter] = {}
"""The starter of this process, by the id of the process: one that was forked needs its own."""
_starting = threading.Lock()


def prepare_processes() -> None:
    """Begin to load what tasks need, so that the first one need not wait for it."""
    _starter()


def _starter() -> _Starter:
    with _starting:
        starter = _known.get(os.getpid())
        if starter is None or not starter.lives:
            _known.clear()
            starter = _known[os.getpid()] = _Starter()
            atexit.register(_close, os.getpid(), starter)
        return starter


def _close(pid: int, starter: _Starter) -> None:
    if os.getpid() == pid:
        starter.close()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=lambda: globals().update(_starting=threading.Lock()))


def end_with_parent(parent: int) -> None:
    """Have the system kill this process when its parent is gone, whatever it does; only Linux does that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def job_bytes(suite: str | None) -> int:
    """Return the memory that the process of a job may use: more for a suite than for what a request sends."""
    if suite is None or sys.platform != "linux":
        return MAX_BYTES
    return max(MAX_BYTES, int(SUITE_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))


def limit_process(task: Task) -> None:
    """Limit the processor time and the memory of this process as a task says.

    Where the machine runs out of memory, Linux ends this process rather than the server.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError):  # a sandbox may forbid it
            Path("/proc/self/oom_score_adj").write_text(FIRST_TO_END)
    if task.cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (task.cpu_seconds, task.cpu_seconds + 5))
    if task.max_bytes is not None and sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (task.max_bytes, task.max_bytes))
