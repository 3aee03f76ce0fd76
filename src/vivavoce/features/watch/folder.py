"""`Folder`: takes what is appended to the files of a folder, as a collector's file exporter writes them.

How far a file is read is kept together with what was read of it, so that nothing is read twice or left out, whenever
the process ends.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.errors import UsageError
from vivavoce.features.watch.intake import MAX_BYTES, Delivery, Position, Refused, join_reasons, read_document
from vivavoce.features.watch.spool import Spool

SUFFIXES = (".json", ".jsonl", ".ndjson")
PIECE = 2**20
"""Bytes that are read at a time, if a line is not longer."""
SETTLE_SECONDS = 2.0
"""Seconds after which a file that nobody writes to is taken for complete, its last line too."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is in a file after `offset`; `is_last` says that nothing more is written to it."""

    path: Path
    name: str
    offset: int
    is_last: bool

    def read(self) -> Delivery:
        """Return the spans of the next whole lines, or of a file that is one document."""
        with self.path.open("rb") as file:
            file.seek(self.offset)
            data = _whole_lines(file, is_last=self.is_last)
        delivery = Delivery(position=Position(self.name, self.offset))
        if self.offset == 0 and b"\n" in data and not _is_json(data.split(b"\n", 1)[0]):
            if self.is_last:
                whole = self.path.read_bytes() if self.path.stat().st_size <= MAX_BYTES else data
                self._add(whole, 0, delivery)
                delivery.position = Position(self.name, len(whole))
        else:
            self._add_lines(data, delivery)
        return delivery

    def _add_lines(self, data: bytes, delivery: Delivery) -> None:
        at = self.offset
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n") and line.strip() and not _is_json(line):
                delivery.refused.append(
                    f"{self.path} at byte {at:,}: the last line is incomplete; waiting for the rest"
                )
                break
            self._add(line, at, delivery)
            at += len(line)
        delivery.position = Position(self.name, at)

    def _add(self, line: bytes, at: int, delivery: Delivery) -> None:
        if not line.strip():
            return
        try:
            more = read_document(parse(line.decode("utf-8-sig")))
        except (BrokenJson, UnicodeDecodeError, RecursionError, Refused) as error:
            delivery.refused.append(f"{self.path} at byte {at:,}: {error}")
            delivery.rejected += 1
            return
        delivery.arrivals += more.arrivals
        delivery.refused += [f"{self.path} at byte {at:,}: {why}" for why in more.refused]
        delivery.rejected += more.rejected


class Folder:
    """Takes what is appended to the files of a folder; `say` is called with what cannot be read.

    Raises:
        UsageError: there is no such folder.
    """

    def __init__(self, path: Path, spool: Spool, say: Callable[[str], None]) -> None:
        if not path.is_dir():
            raise UsageError(f"{path}: there is no such folder")
        self._path, self._spool, self._say = path, spool, say
        self._offsets: dict[str, int] | None = None
        self._reasons: dict[str, str] = {}

    async def look(self, *, is_last: bool = False) -> bool:
        """Take what is new; return whether there was anything. With `is_last`, no file is waited for."""
        if self._offsets is None:
            self._offsets = await self._spool.work(lambda database, _: dict(database.execute("SELECT * FROM file")))
        is_new = False
        for path in sorted(self._path.iterdir()):
            if path.suffix in SUFFIXES and path.is_file():
                while await self._take(path, self._offsets, is_last):
                    is_new = True
        return is_new

    async def _take(self, path: Path, offsets: dict[str, int], is_last: bool) -> bool:
        try:
            about, name = await asyncio.to_thread(_about, path)
        except OSError as error:
            self._say(f"{path}: cannot be read: {error.strerror or error}")
            return False
        offset = offsets.get(name, 0)
        if about.st_size < offset:
            offset = 0
        if about.st_size == offset:
            return False
        complete = is_last or time.time() - about.st_mtime > SETTLE_SECONDS
        try:
            delivery = await self._spool.put(_Piece(path, name, offset, complete).read, time.time())
        except Refused as refused:
            self._say(f"{path}: {refused}")
            return False
        except OSError as error:
            self._say(f"{path}: cannot be read: {error.strerror or error}")
            return False
        if delivery.refused and self._reasons.get(name) != (why := join_reasons(delivery.refused)):
            self._reasons[name] = why
            self._say(why)
        if delivery.position is None:
            return False
        offsets[name] = delivery.position.offset
        return delivery.position.offset > offset


def _whole_lines(file: BinaryIO, *, is_last: bool) -> bytes:
    """Return the next whole lines; one that is not ended is whole if it is the last of the file."""
    data = b""
    while len(data) < MAX_BYTES:
        piece = file.read(PIECE)
        data += piece
        end = data.rfind(b"\n") + 1
        if not piece:
            return data if is_last else data[:end]
        if end:
            return data[:end]
    return data


def _about(path: Path) -> tuple[os.stat_result, str]:
    """Return what the disk says of a file, and what tells it from others, also after it was renamed.

    That is its number on the disk and its first line: numbers are reused.
    """
    with path.open("rb") as file:
        about, first = os.fstat(file.fileno()), file.readline(4096)
    return about, f"{about.st_ino}-{blake2b(first.rstrip(), digest_size=8).hexdigest()}"


def _is_json(line: bytes) -> bool:
    try:
        parse(line.decode("utf-8-sig"))
    except (BrokenJson, UnicodeDecodeError):
        return False
    return True
