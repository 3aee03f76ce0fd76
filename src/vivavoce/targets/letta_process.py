"""The process of the Letta Code command line: JSON lines in and out; its children end with it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from vivavoce.errors import TargetFault
from vivavoce.records.score import EVIDENCE_LIMIT

LINE_LIMIT = 64 * 2**20
"""Bytes of one line of output."""

GRACE = 3.0
"""Seconds that a process may take to end by itself."""

_TAG = "VIVAVOCE_PROCESS"


class LettaProcess:
    """One running command line.

    Its tools run in process groups of their own and survive it, so every process of the family carries a tag in its
    environment and is found by it (on Linux; elsewhere only its own process group ends with it).
    """

    def __init__(self, process: Process, tag: str) -> None:
        self._process = process
        self._tag = tag.encode()
        self._torn = b""
        self._strays: deque[str] = deque(maxlen=20)
        self._errors = bytearray()
        self._drained = asyncio.create_task(self._drain_errors())

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], directory: Path) -> LettaProcess:
        """Start a command in a process group of its own.

        Raises:
            TargetFault: the system cannot start it.
        """
        tag = uuid4().hex
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=directory,
                env={**env, _TAG: tag},
                limit=LINE_LIMIT,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetFault(f"cannot start {command[0]} in {directory}: {error.strerror}", kind="crash") from error
        return cls(process, tag)

    async def write(self, event: Mapping[str, Any]) -> None:
        """Write one line."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the process is gone; reading says so, and why
            self._process.stdin.write(json.dumps(event).encode() + b"\n")
            await self._process.stdin.drain()

    async def read(self) -> dict[str, Any] | None:
        """Return the next event, None when the process has closed its output; other lines are kept as evidence.

        Raises:
            TargetFault: a line is longer than `LINE_LIMIT`.
        """
        assert self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError as error:
                raise TargetFault(f"letta wrote a line of more than {LINE_LIMIT:,} bytes", kind="size") from error
            if not line:
                return None
            event = self._parse(line.strip())
            if event is not None:
                return event

    async def ended(self) -> TargetFault:
        """Return the fault to raise when the output ended too early."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await self._process.wait()
                await asyncio.shield(self._drained)
        code = self._process.returncode
        message = "letta closed its output" if code is None else f"letta ended with exit code {code}"
        return TargetFault(f"{message} before the answer was complete", kind="crash", evidence=self.evidence())

    def evidence(self) -> str:
        """Return the end of what it wrote to stderr, and the lines on stdout that were no events."""
        errors = self._errors.decode(errors="replace").strip()
        return "\n".join([*self._strays, errors])[-EVIDENCE_LIMIT:]

    def kill(self) -> None:
        """Kill the process and everything it started."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for _ in range(10):  # one of them may start another while we look
            family = self._family()
            if not family:
                return
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    async def close(self, grace: float = GRACE) -> int | None:
        """Let the process end by itself for `grace` seconds, kill what is left, and return the exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            if grace:
                await self._gone(grace)
        finally:
            self.kill()
            await self._gone(GRACE)
            self._drained.cancel()
        return self._process.returncode

    async def _gone(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._discard_output()
                await asyncio.shield(self._drained)
                await self._process.wait()

    async def _discard_output(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(2**16):
            pass

    async def _drain_errors(self) -> None:
        assert self._process.stderr is not None
        while piece := await self._process.stderr.read(2**14):
            self._errors += piece
            del self._errors[:-EVIDENCE_LIMIT]

    def _family(self) -> list[int]:
        tagged: list[int] = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):  # it ended meanwhile, or belongs to another user
                if self._tag in environ.read_bytes():
                    tagged.append(int(environ.parent.name))
        return tagged

    def _parse(self, line: bytes) -> dict[str, Any] | None:
        """Read a line as an event, alone, after other text, or as the second half of a torn one."""
        torn, self._torn = self._torn, b""
        start = max(line.find(b'{"type"'), 0)
        for candidate, rest in ((line, torn), (torn + line, b""), (line[start:], torn + line[:start])):
            event = _event(candidate)
            if event is not None:
                if rest:
                    self._strays.append(rest.decode(errors="replace"))
                return event
        if torn:
            self._strays.append(torn.decode(errors="replace"))
        if line.startswith(b"{"):
            self._torn = line
        elif line:
            self._strays.append(line.decode(errors="replace"))
        return None


def _event(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        return cast("dict[str, Any]", json.loads(line))
    except ValueError:
        return None
