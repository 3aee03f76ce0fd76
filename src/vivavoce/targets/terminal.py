"""`TerminalTarget`: a person who answers in the terminal, for trying a dataset or a tester out by hand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from vivavoce.errors import TargetFault
from vivavoce.messages import AnyMessage, said_by_assistant
from vivavoce.pacing.loops import PerLoop, in_thread
from vivavoce.records.trajectory import default_calls
from vivavoce.safe_text import safe
from vivavoce.targets.target import Opening, Reply

GOES_ON = "\\"
"""The end of a line after which the reply continues with the next one."""


class TerminalTarget:
    """A person: each message of the user is shown on standard error, and a line of standard input is the reply.

    One conversation goes on at a time, whatever the limit of the suite is.
    """

    stateless = False
    visible_calls = default_calls("terminal")

    def __init__(self, name: str = "terminal", *, read: TextIO | None = None, show: TextIO | None = None) -> None:
        self.name = name
        self._read, self._show = read, show
        self._one = PerLoop(asyncio.Lock)
        self._reading: asyncio.Task[str] | None = None  # goes on where a reply was waited for too long

    async def open(self, opening: Opening) -> TerminalSession:
        """Begin a conversation, and say so."""
        self.show(f"\n── {opening.sample_id}: you are the assistant ──")
        return TerminalSession(self)

    async def close(self) -> None:
        """Do nothing."""

    def show(self, text: str) -> None:
        """Show a text without terminal control characters."""
        print(safe(text), file=self._show or sys.stderr, flush=True)

    async def ask(self, text: str) -> str:
        """Show what the user says and return the reply.

        Raises:
            TargetFault: the input has ended.
        """
        async with self._one.get():
            self.show(f"\nuser: {text}\nyou:")
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(in_thread(self._reply))
            return await asyncio.shield(self._reading)

    def _reply(self) -> str:
        lines: list[str] = []
        while not lines or lines[-1].endswith(GOES_ON):
            line = (self._read or sys.stdin).readline()
            if not line:
                raise TargetFault(f"{self.name}: the input ended before an answer", kind="closed")
            lines.append(line.rstrip("\r\n"))
        return "\n".join(line.removesuffix(GOES_ON) for line in lines)


class TerminalSession:
    """One conversation with a person."""

    opening: Sequence[AnyMessage] = ()
    id: str | None = None

    def __init__(self, target: TerminalTarget) -> None:
        self._target = target

    async def send(self, messages: Sequence[AnyMessage]) -> Reply:
        """Wait for a reply.

        Raises:
            TargetFault: the input has ended.
        """
        return Reply([said_by_assistant(await self._target.ask(messages[-1].text))])

    async def state(self) -> dict[str, Any] | None:
        """Return None."""
        return None

    async def close(self) -> None:
        """Do nothing."""
