"""A person in the terminal as the target."""

from __future__ import annotations

import asyncio
from io import StringIO

import pytest

from asking import asked, told
from vivavoce.errors import TargetFault
from vivavoce.targets import TerminalTarget


async def test_a_line_is_a_reply_and_goes_on_where_it_says_so() -> None:
    string_io = StringIO()
    target = TerminalTarget(read=StringIO("Hello\\\nthere\nBye\n"), show=string_io)
    first, second = await asked(target, "Hi\x1b[31m", "Bye")
    assert told(first) == [("assistant", None, "Hello\nthere", [])]
    assert told(second) == [("assistant", None, "Bye", [])]
    assert string_io.getvalue() == "\n── s: you are the assistant ──\n\nuser: Hi\nyou:\n\nuser: Bye\nyou:\n"


async def test_an_input_that_ended_is_a_fault() -> None:
    with pytest.raises(TargetFault, match="terminal: the input ended before an answer"):
        await asked(TerminalTarget(read=StringIO(), show=StringIO()), "Hi")


async def test_a_reply_that_came_too_late_is_that_of_the_next_message() -> None:
    written: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    class Slow(StringIO):
        def readline(self, size: int = -1, /) -> str:
            return asyncio.run_coroutine_threadsafe(_result(written), written.get_loop()).result()

    target = TerminalTarget(read=Slow(), show=StringIO())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(target.ask("Hi"), 0.01)
    waiting = asyncio.create_task(target.ask("Are you there?"))
    await asyncio.sleep(0.01)
    written.set_result("Yes\n")
    assert await waiting == "Yes"


async def _result(future: asyncio.Future[str]) -> str:
    return await future
