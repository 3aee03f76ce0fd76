"""Processes of a server: what they are given, what they give back, and that each of them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from faults.servers import soon
from vivavoce.errors import NotFound, StoreError
from vivavoce.server import processes
from vivavoce.server.processes import NO_MEMORY, Task, TooMuchWork, WorkProcess, call

WORK = "server.hard_work"


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or is only waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return sys.platform == "linux"
        return True
    return state.rpartition(")")[2].split()[0] == "Z"


def test_a_process_has_the_surroundings_of_its_server_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for color in ("green", "blue"):
        (tmp_path / color).mkdir()
        monkeypatch.chdir(tmp_path / color)
        monkeypatch.setenv("COLOR", color)
        shown = call(Task(f"{WORK}:surroundings", ()))
        assert shown == {"folder": str(tmp_path / color), "color": color, "path": sys.path}


def test_an_error_comes_back_as_it_was() -> None:
    with pytest.raises(NotFound, match=r"no suite 'x\.yaml' in the served folder") as caught:
        call(Task(f"{WORK}:refuse", ()))
    assert (caught.value.what, caught.value.name) == ("suite", "x.yaml")
    assert [problem.message for problem in caught.value.problems] == [str(caught.value)]


def test_a_process_whose_time_is_used_up_is_killed_whatever_it_does() -> None:
    with pytest.raises(TooMuchWork, match="more than 1 s of CPU time"):
        call(Task(f"{WORK}:hold_the_interpreter", (), cpu_seconds=1))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_process_that_needs_too_much_memory_says_so() -> None:
    assert call(Task(f"{WORK}:allocate", (10**8,), max_bytes=10**9)) == 10**8
    with pytest.raises(TooMuchWork) as caught:
        call(Task(f"{WORK}:allocate", (10**9,), max_bytes=10**9))
    assert str(caught.value) == NO_MEMORY


@pytest.mark.skipif(sys.platform != "linux", reason="other systems choose by themselves")
def test_where_memory_runs_out_a_task_is_ended_and_not_the_server() -> None:
    assert call(Task(f"{WORK}:out_of_memory_score", ())) == 1000
    assert int(Path("/proc/self/oom_score_adj").read_text()) < 1000


def test_a_process_that_crashes_is_an_error_of_its_request_alone() -> None:
    with pytest.raises(StoreError, match="ended early"):
        call(Task(f"{WORK}:crash", ()))
    assert call(Task(f"{WORK}:allocate", (1,))) == 1


def test_the_end_of_a_process_is_the_end_of_what_it_has_started() -> None:
    with WorkProcess(Task(f"{WORK}:begin_another", ())) as process:
        pids: tuple[int, int] = process.receive()
        assert process.pid == pids[0]
        assert not any(map(has_ended, pids))
    soon(lambda: all(map(has_ended, pids)))


def test_a_starter_that_is_gone_is_replaced_and_leaves_no_task() -> None:
    assert call(Task(f"{WORK}:allocate", (1,))) == 1
    (starter,) = processes._known.values()  # pyright: ignore[reportPrivateUsage]
    with WorkProcess(Task(f"{WORK}:begin_another", ())) as process:
        pids: tuple[int, int] = process.receive()
        os.kill(starter._process.pid, signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
        soon(lambda: has_ended(starter._process.pid))  # pyright: ignore[reportPrivateUsage]
        assert call(Task(f"{WORK}:allocate", (1,))) == 1
        process.kill()
    soon(lambda: all(map(has_ended, pids)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not end a process with its parent")
def test_a_task_that_holds_the_interpreter_ends_with_its_starter() -> None:
    with WorkProcess(Task(f"{WORK}:begin_another_and_hold_the_interpreter", ())) as process:
        pids: tuple[int, int] = process.receive()
        (starter,) = processes._known.values()  # pyright: ignore[reportPrivateUsage]
        os.kill(starter._process.pid, signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
        soon(lambda: has_ended(pids[0]))
    soon(lambda: has_ended(pids[1]))


def test_a_command_about_a_task_of_another_starter_reaches_nobody_else() -> None:
    with WorkProcess(Task(f"{WORK}:begin_another", ())) as old:
        pids: tuple[int, int] = old.receive()
        os.kill(old._starter._process.pid, signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]
        soon(lambda: has_ended(old._starter._process.pid))  # pyright: ignore[reportPrivateUsage]
        with WorkProcess(Task(f"{WORK}:begin_another", ())) as new:
            others: tuple[int, int] = new.receive()
            old.pid = new.pid  # the system may give the number to another process
            old.kill()
            assert old.end() == 0
            assert not any(map(has_ended, others))
    soon(lambda: all(map(has_ended, (*pids, *others))))


OWNER = """\
import sys, time
sys.path[:] = {path!r}
from vivavoce.server.processes import Task, WorkProcess

process = WorkProcess(Task("server.hard_work:begin_another", ()))
print(*process.receive(), flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_their_server_however_it_ends(number: signal.Signals) -> None:
    command = [sys.executable, "-c", OWNER.format(path=sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        pids = [int(pid) for pid in server.stdout.readline().split()]
        assert len(pids) == 2
        server.send_signal(number)
    soon(lambda: all(map(has_ended, pids)))
