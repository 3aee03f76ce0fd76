from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator

import pytest

from vivavoce.pacing.loops import wait_for


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise, as in a notebook; a worker of pytest-xdist ignores it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.skipif(sys.platform == "win32", reason="a signal cannot be sent to one's own process there")
@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_what_is_waited_for_where_a_loop_is_running() -> None:
    ended: list[str] = []

    async def long() -> None:
        try:
            await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def cell() -> None:
        wait_for(long())

    loop, since = asyncio.new_event_loop(), time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        loop.close()
    assert ended == ["cancelled"]
    assert time.monotonic() - since < 30
