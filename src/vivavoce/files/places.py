"""Files on a disk, in S3 or in Google Cloud Storage: found by a pattern, read, and written whole or not at all.

A place is a path, or an address such as `s3://bucket/folder`. Options of S3 stand in its address, as pyarrow reads
them: `s3://bucket/folder?endpoint_override=localhost:9000&scheme=http`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vivavoce.errors import UsageError
from vivavoce.files.frames import load_extra

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://")
_MAGIC = re.compile(r"[*?\[]")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file at a place: its size in bytes, and when it changed, in seconds since the epoch, None where unknown."""

    place: str
    size: int
    changed: float | None


def is_address(place: str) -> bool:
    """Return whether a place is an address and no path."""
    return _ADDRESS.match(place) is not None


def absolute(place: str) -> str:
    """Return a place that does not depend on where we run."""
    return place if is_address(place) else str(Path(place).absolute())


def find_files(pattern: str) -> list[FoundFile]:
    """Return the files that a place names, or that fit it where it has `*`, `?` or `[…]`, sorted by their names.

    Raises:
        UsageError: there is none, or the place cannot be reached.
        MissingExtra: pyarrow is not installed.
    """
    place, options = _split(absolute(pattern))
    with _translate_errors(pattern):
        system, path = _system(place + options)
        root = path[: match.start()].rpartition("/")[0] if (match := _MAGIC.search(path)) else None
        if root is None:
            infos = [system.get_file_info(path)]
        else:
            selector = load_extra("pyarrow.fs", "reading files").FileSelector
            infos = system.get_file_info(selector(root or "/", allow_not_found=True, recursive=True))
        fitting = [info for info in infos if info.is_file and (root is None or _fits(info.path, path))]
    if not fitting:
        raise UsageError(f"{pattern}: there is no such file")
    start = place[: len(place) - len(path)] if is_address(place) else ""
    return sorted((_build_file(info, start, options) for info in fitting), key=lambda file: file.place)


@contextmanager
def open_place(place: str) -> Generator[Any]:
    """Open a file to be read from any place in it, as pyarrow's `NativeFile`.

    Raises:
        UsageError: it cannot be read.
    """
    with _translate_errors(place):
        system, path = _system(absolute(place))
        file = system.open_input_file(path)
    with file:
        yield file


@dataclass(frozen=True)
class Folder:
    """A folder at a place, which is made when something is written to it."""

    place: str

    def names(self) -> set[str]:
        """Return the names of its files."""
        with _translate_errors(self.place):
            system, path = self._at
            selector = load_extra("pyarrow.fs", "reading files").FileSelector
            return {
                info.base_name for info in system.get_file_info(selector(path, allow_not_found=True)) if info.is_file
            }

    def place_of(self, name: str) -> str:
        """Return the place of a file of it, without the options of an address, as people read it."""
        return f"{_split(self.place)[0]}/{name}"

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        with self.open(name) as file:
            return file.read()

    @contextmanager
    def open(self, name: str) -> Generator[Any]:
        """Open a file of it to be read, as `open_place` does."""
        with _translate_errors(self.place_of(name)):
            system, path = self._at
            file = system.open_input_file(f"{path}/{name}")
        with file:
            yield file

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, or not at all.

        Raises:
            UsageError: it cannot be written.
        """
        with self._writing(name) as out:
            out.write(content)

    def put(self, name: str, source: Path) -> None:
        """Copy a file of this machine to it, whole or not at all.

        Raises:
            UsageError: it cannot be written.
        """
        with source.open("rb") as file, self._writing(name) as out:
            while chunk := file.read(_CHUNK):
                out.write(chunk)

    @contextmanager
    def _writing(self, name: str) -> Generator[Any]:
        with _translate_errors(self.place_of(name)):
            system, path = self._at
            if is_address(self.place):  # an object is there when all of it has been sent
                with system.open_output_stream(f"{path}/{name}") as out:
                    yield out
                return
            system.create_dir(path, recursive=True)
            beside = f"{path}/.{name}.part"
            with system.open_output_stream(beside) as out:
                yield out
            system.move(beside, f"{path}/{name}")

    @cached_property
    def _at(self) -> tuple[Any, str]:
        return _system(absolute(self.place))


def _system(place: str) -> tuple[Any, str]:
    """Return the file system of a place, and its path there."""
    system, path = load_extra("pyarrow.fs", "reading files").FileSystem.from_uri(place)
    return system, str(path).rstrip("/")


def _split(place: str) -> tuple[str, str]:
    """Return an address without its options, and these with their question mark; a path has none."""
    address, mark, options = place.partition("?") if is_address(place) else (place, "", "")
    return address, mark + options


def _fits(path: str, pattern: str) -> bool:
    """Return whether a path fits a pattern, folder by folder."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


def _build_file(info: Any, start: str, options: str) -> FoundFile:
    changed = None if info.mtime_ns is None else info.mtime_ns / 1e9
    return FoundFile(f"{start}{info.path}{options}", info.size, changed)


@contextmanager
def _translate_errors(place: str) -> Generator[None]:
    """Turn the errors of a file system into a user's."""
    arrow = load_extra("pyarrow", "files in pieces")
    try:
        yield
    except (OSError, arrow.ArrowException) as error:
        why = getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{place}: {why}") from error
