"""`viva` without the time that Python needs to load it: each call is a process of its own, split off from one that has.

A step of the action calls `viva` a dozen times, and each call would load the same modules anew.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from vivavoce.cli.main import main

CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as place:
    place.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])
    socket.send_fds(place, [call.encode()], [0, 1, 2])
    place.shutdown(socket.SHUT_WR)
    sys.exit(int(place.recv(8) or b"70"))
"""
COMMANDS = ("cache", "compare", "export", "run", "runs", "validate")


@contextmanager
def forked_viva(folder: Path) -> Generator[Path]:
    """Write a program `viva` to a new folder; it works while the block lasts."""
    programs = folder / "programs"
    programs.mkdir()
    address = str(programs / "calls")
    program = programs / "viva"
    program.write_text(CLIENT.format(python=sys.executable, address=address))
    program.chmod(0o755)
    with subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield programs
        finally:
            server.terminate()


def _serve(address: str) -> NoReturn:
    """Load what the commands need, then answer each call with a process of its own."""
    for command in COMMANDS:
        import_module(f"vivavoce.cli.{command}")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as calls:
        calls.bind(address)
        calls.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            call, _ = calls.accept()
            with call:
                if os.fork() == 0:
                    _answer(call)


def _answer(call: socket.socket) -> NoReturn:
    """Be the program that was called."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(call, 1 << 20, 3)
    while more := call.recv(1 << 20):
        text += more
    arguments, folder, environment = json.loads(text)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    sys.stdin, sys.stdout = os.fdopen(0, encoding="utf-8"), os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["viva", *arguments]
    code = 70
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    call.sendall(str(code).encode())
    os._exit(0)


if __name__ == "__main__":
    _serve(sys.argv[1])
