"""A call that may block has a thread to itself, which the next call gets when it has ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from vivavoce.pacing import loops
from vivavoce.pacing.loops import in_thread

PLACE: ContextVar[str] = ContextVar("place", default="nowhere")


def fail() -> None:
    raise ValueError("it fails")


async def several(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*calls)


def test_calls_one_after_the_other_have_the_same_thread() -> None:
    async def twice() -> list[int]:
        return [await in_thread(threading.get_ident), await in_thread(threading.get_ident)]

    first, second = asyncio.run(twice())
    assert first == second


def test_calls_at_the_same_time_have_a_thread_each_however_many_they_are() -> None:
    all_there = threading.Barrier(50)
    places = asyncio.run(several(*(in_thread(lambda: all_there.wait(10)) for _ in range(50))))
    assert sorted(places) == list(range(50))


def test_a_call_that_is_given_up_holds_up_no_other_and_leaves_a_thread_that_works() -> None:
    release = threading.Event()

    async def talk() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await in_thread(release.wait)
        assert await in_thread(lambda: "another") == "another"
        release.set()
        assert await several(*(in_thread(lambda: "one more") for _ in range(5))) == ["one more"] * 5

    asyncio.run(talk())


def test_what_a_call_raises_is_raised_and_the_thread_goes_on() -> None:
    async def talk() -> list[int]:
        before = await in_thread(threading.get_ident)
        with pytest.raises(ValueError, match="it fails"):
            await in_thread(fail)
        return [before, await in_thread(threading.get_ident)]

    before, after = asyncio.run(talk())
    assert before == after


def test_each_call_sees_the_variables_of_its_own_task() -> None:
    async def at(place: str) -> str:
        PLACE.set(place)
        return await in_thread(PLACE.get)

    assert asyncio.run(several(at("here"), at("there"))) == ["here", "there"]
    assert asyncio.run(in_thread(PLACE.get)) == "nowhere"


def test_what_a_call_sets_is_not_seen_by_the_next_in_its_thread() -> None:
    async def talk() -> str:
        await in_thread(lambda: PLACE.set("elsewhere"))
        return await in_thread(PLACE.get)

    assert asyncio.run(talk()) == "nowhere"


def test_a_thread_without_calls_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "IDLE_SECONDS", 0.01)
    asyncio.run(several(*(in_thread(lambda: time.sleep(0.05)) for _ in range(20))))
    end = time.monotonic() + 10
    while any(thread.name == "vivavoce-call" for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert asyncio.run(in_thread(lambda: "another")) == "another"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_begins_threads_of_its_own() -> None:
    code = """
import asyncio, os, signal
from vivavoce.pacing.loops import in_thread
asyncio.run(in_thread(lambda: None))
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(5)
os._exit(asyncio.run(in_thread(lambda: 7)))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=20).returncode == 7
