"""Event loops of ours go on where what they run wants to end the program, or hangs in a thread."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from vivavoce.pacing.loops import LoopThread, new_loop, run


@pytest.fixture(autouse=True, params=["uvloop", "asyncio"])
def kind_of_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Hold each test with both kinds of loops: uvloop's is not taken where nest_asyncio is installed."""
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    patches = ("nest_asyncio",) if request.param == "asyncio" else ()

    def find_spec(name: str) -> object:
        return name if name in patches else None

    monkeypatch.setattr("vivavoce.pacing.loops.find_spec", find_spec)
    return request.param


def test_the_loop_is_one_that_nest_asyncio_can_patch_where_it_is_installed(kind_of_loop: str) -> None:
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.startswith(kind_of_loop)


class OwnInterrupt(KeyboardInterrupt):
    """One of a framework."""


ENDS = [SystemExit(0), KeyboardInterrupt("enough"), OwnInterrupt("enough")]


async def _raising(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def _caught(error: BaseException) -> BaseException | None:
    try:
        await asyncio.create_task(_raising(error))
    except BaseException as found:
        await asyncio.sleep(0)
        return found
    return None


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_who_waits_for_a_task_gets_what_it_raises_as_the_end_of_the_program(error: BaseException) -> None:
    async def several() -> list[BaseException | None]:
        return await asyncio.gather(*(_caught(error) for _ in range(5)))

    assert run(several()) == [error] * 5


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_what_nobody_catches_ends_the_program(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run(_raising(error))


@pytest.mark.parametrize("error", ENDS, ids=repr)
def test_a_loop_in_a_thread_goes_on(error: BaseException) -> None:
    thread = LoopThread("test")
    try:
        assert thread.run(_caught(error)) is error
        assert thread.begin(_caught(error)).result(timeout=10) is error
    finally:
        thread.stop()


@pytest.fixture
def ended_by_alarm() -> Iterator[None]:
    def end(number: int, frame: object) -> None:
        sys.exit(7)

    handler = signal.signal(signal.SIGALRM, end)
    yield
    signal.signal(signal.SIGALRM, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no alarm there")
@pytest.mark.usefixtures("ended_by_alarm")
def test_a_signal_that_ends_the_program_does() -> None:
    async def waiting() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        await asyncio.sleep(30)

    since = time.monotonic()
    with pytest.raises(SystemExit):
        run(waiting())
    assert time.monotonic() - since < 10


def test_threads_that_hang_keep_neither_others_nor_the_end() -> None:
    free, since = threading.Event(), time.monotonic()

    async def hanging() -> int:
        loop = asyncio.get_running_loop()
        stuck = [loop.run_in_executor(None, free.wait) for _ in range(100)]
        answer = await asyncio.wait_for(loop.run_in_executor(None, lambda: 3), 10)
        assert not any(task.done() for task in stuck)
        return answer

    try:
        assert run(hanging()) == 3
    finally:
        free.set()
    assert time.monotonic() - since < 10


def test_what_a_thread_raises_comes_to_who_waits() -> None:
    async def failing() -> None:
        await asyncio.to_thread(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        run(failing())
