"""Work that Ctrl-C, or a signal to end, stops in good order: what is done is kept, and its record says so."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

from vivavoce.pacing.loops import run as run_loop
from vivavoce.run.execution import Execution
from vivavoce.run.result import RunResult

_STOPPING = (signal.SIGINT, signal.SIGTERM)


def execute(work: Execution, stop: Callable[[], object]) -> RunResult:
    """Do work and wait for it; a signal calls `stop`, which stops it. Afterwards signals do what they did before."""
    if threading.current_thread() is not threading.main_thread():  # no other thread is given signals
        return run_loop(work.execute())
    handlers = {number: signal.getsignal(number) for number in _STOPPING}
    try:
        return run_loop(_interruptible(work, stop))
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


async def _interruptible(work: Execution, stop: Callable[[], object]) -> RunResult:
    loop = asyncio.get_running_loop()
    for number in _STOPPING:
        with suppress(NotImplementedError):  # Windows has no such handlers; Ctrl-C ends the program there
            loop.add_signal_handler(number, stop)
    return await work.execute()
