"""`viva` and `python` without the time that Python needs to load the package: each call is a process of its own.

A process that has loaded what commands need waits for calls and splits in two for each. `program("viva")` is a small
program that makes the call: it passes on its arguments, folder, environment, streams and signals, and ends as the
process of the call ends; where it is killed, that process is too.
"""

from __future__ import annotations

import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from atexit import _run_exitfuncs as run_exit_functions  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from traceback import print_exc
from typing import Any, NoReturn

CLIENT = """\
#!{python} -IS
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as place:
    place.connect({address!r})
    call = json.dumps([{name!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda number, _: place.send(bytes([number])))
    signal.signal(signal.SIGUSR1, lambda number, _: place.send(bytes([signal.SIGKILL])))
    socket.send_fds(place, [len(call).to_bytes(8, "big")], [0, 1, 2])
    place.sendall(call)
    status = int(place.recv(8) or b"70")
if status < 0:
    if status != -signal.SIGKILL:
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
LOADED = (
    *(f"vivavoce.cli.{name}" for name in ("export", "judge", "run", "runs", "serve", "show", "store", "test")),
    *("vivavoce.server.app", "vivavoce.testing", "vivavoce.testing.plugin"),
    "vivavoce.features.compare.command",
    *("vivavoce.report.matrix", "vivavoce.report.transcript", "vivavoce.store.comments"),
    *("vivavoce.targets.openai", "vivavoce.targets.http"),
)


@cache
def program(name: str) -> Path:
    """Return the path of a program that works while this process lives: `viva`, or `python` for a script or `-c`."""
    return _programs() / name / name


@cache
def _programs() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="viva-"))
    address = str(folder / "calls")
    for name in ("viva", "python"):
        path = folder / name / name
        path.parent.mkdir()
        path.write_text(CLIENT.format(python=sys.executable, address=address, name=name))
        path.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    _servers.append(server)
    return folder


def kill(call: subprocess.Popen[Any]) -> None:
    """Kill the process of a call as `kill -9` does, and wait until it is gone, which `call.kill()` does not."""
    call.send_signal(signal.SIGUSR1)
    call.wait()


_servers: list[subprocess.Popen[bytes]] = []
"""The process that answers calls: it ends when its standard input does, which is when this process ends."""


def _serve(address: str) -> None:
    """Load what commands need, then answer each call with a process of its own."""
    for module in LOADED:
        import_module(module)
    import_module("vivavoce.report.html.rendering").read_templates()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as calls:
        calls.bind(address)
        calls.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while calls in select.select([calls, 0], [], [])[0]:
            call, _ = calls.accept()
            with call:
                if os.fork() == 0:
                    calls.close()
                    _watch(call)
    shutil.rmtree(Path(address).parent)


def _watch(call: socket.socket) -> NoReturn:
    """Start the process that was asked for, pass on signals, and say how it ended; kill it where the caller is gone."""
    ended, bell = socket.socketpair()
    for end in (ended, bell):
        end.setblocking(False)
    signal.set_wakeup_fd(bell.fileno())
    signal.signal(signal.SIGCHLD, _go_on)
    size, streams, _, _ = socket.recv_fds(call, 8, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += call.recv(1 << 20)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in (call, ended, bell):
            end.close()
        name, arguments, folder, environment = json.loads(text)
        _be(name, arguments, folder, environment, streams)
    for stream in streams:
        os.close(stream)
    while True:
        ready, _, _ = select.select([call, ended], [], [])
        if ended in ready and (status := os.waitpid(child, os.WNOHANG))[0]:
            with suppress(OSError):
                call.sendall(str(os.waitstatus_to_exitcode(status[1])).encode())
            os._exit(0)
        if call in ready:
            numbers = call.recv(64)
            for number in numbers or [signal.SIGKILL]:
                os.kill(child, number)
            if not numbers:
                os._exit(0)


def _go_on(number: int, _: object) -> None:
    """Let the signal write to the file that wakes the watcher."""


def _be(name: str, arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> NoReturn:
    """Be the program that was called, to its end.

    Ctrl-C ends it, also where it is ignored, as in what a shell started in the background.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if environment.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    sys.argv = arguments if name == "python" else [name, *arguments]
    code = 0
    try:
        if name == "python" and arguments[0] == "-c":
            sys.path[0] = ""
            sys.argv = ["-c", *arguments[2:]]
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
        elif name == "python":
            sys.path[0] = str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            import_module("vivavoce.cli.main").main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        print_exc()
        code = 1
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    run_exit_functions()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])
