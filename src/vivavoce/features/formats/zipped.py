"""The JSON files in a zip archive, one at a time, with a guard against archives that unfold without end."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, ZipInfo

from vivavoce.comparing.json_values import BrokenJson, broken, check_depth, decode_lenient_from
from vivavoce.errors import Problem
from vivavoce.files.frames import unpack_zstandard
from vivavoce.files.rows import open_file

BEGINS = b"PK\x03\x04"
"""The first bytes of a zip archive."""

_LARGEST = 256 * 1024**2
"""Bytes that a file in an archive may have; it is in memory while it is read."""
_UNFOLDS = 200
"""How many times its own size an archive may unfold to, if that is more than one file may have."""
_ZSTANDARD = 93
_HEADER = 30
_UNREADABLE = (BadZipFile, OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, UnicodeDecodeError)


def json_members(path: Path, *names: str) -> Iterator[tuple[str, Any] | Problem]:
    """Yield the name and the value of each file in an archive that `names` begin, in their order there.

    NaN is None. A file that cannot be read is a `Problem`, and the next one is read.

    Raises:
        UsageError: the archive cannot be opened.
        MissingExtra: it is compressed with Zstandard, which Python can read from 3.14 on, and pyarrow is not there.
    """
    with open_file(path) as file:
        try:
            archive = ZipFile(file)
        except (BadZipFile, OSError, ValueError) as error:
            yield Problem(f"is not a complete zip archive: {error}", path)
            return
        size, unfolded = path.stat().st_size, sum(info.file_size for info in archive.infolist())
        if unfolded > max(_LARGEST, size * _UNFOLDS):
            yield Problem(f"expands from {size:,} to {unfolded:,} bytes, more than any log does", path)
            return
        for info in archive.infolist():
            if info.filename.startswith(names) and info.filename.endswith(".json"):
                yield _member(archive, file, info, path)


def _member(archive: ZipFile, file: BinaryIO, info: ZipInfo, path: Path) -> tuple[str, Any] | Problem:
    if info.file_size > _LARGEST:
        return Problem(f"{info.filename} has {info.file_size:,} bytes; at most {_LARGEST:,} are read", path)
    try:
        return info.filename, _value(_unpacked(archive, file, info).decode())
    except BrokenJson as error:
        return Problem(f"{info.filename}: {error}", path)
    except _UNREADABLE as error:
        return Problem(f"{info.filename} cannot be read: {error}", path)


def _unpacked(archive: ZipFile, file: BinaryIO, info: ZipInfo) -> bytes:
    try:
        with archive.open(info) as member:
            return member.read(info.file_size)
    except NotImplementedError:
        if info.compress_type != _ZSTANDARD or info.flag_bits & 1:
            raise
    data = unpack_zstandard(_packed(file, info), info.file_size)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise BadZipFile("it is damaged")
    return data


def _packed(file: BinaryIO, info: ZipInfo) -> bytes:
    """Return the bytes of a file as they are in the archive; its own header says how far behind it they begin."""
    file.seek(info.header_offset)
    header = file.read(_HEADER)
    file.seek(int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little"), 1)
    return file.read(info.compress_size)


def _value(text: str) -> Any:
    try:
        value, _ = decode_lenient_from(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError) as error:
        raise broken(error) from error
    check_depth(value)
    return value
