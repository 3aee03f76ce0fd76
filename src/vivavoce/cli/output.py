"""Where the command line writes: results to standard output, progress and notes to standard error.

Names, ids, errors and conversations come from files, targets and models. Whatever is printed for people passes through
here and is made safe here, as the last thing before it is written: neither a terminal nor the log of a CI server obeys
it. Only files for programs that go into a pipe stay as they are, to the byte.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, TextIO, cast

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from vivavoce.errors import UsageError
from vivavoce.report.text import inert, printable, printable_json
from vivavoce.safe_text import safe
from vivavoce.settings import settings
from vivavoce.store.database.address import Place


def _place(given: str | None) -> str | None:
    return given and Place(given)


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|ADDRESS",
        callback=_place,
        help="The database file, or postgresql://user@host/database; .vivavoce/vivavoce.db unless VIVAVOCE_STORE "
        "names one.",
    ),
]


class _Through:
    """A stream of text that changes what is written to it."""

    def __init__(self, stream: TextIO, change: Callable[[str], str]) -> None:
        self._stream, self._change = stream, change
        self.encoding, self.isatty, self.fileno, self.flush = (
            *(stream.encoding, stream.isatty),
            *(stream.fileno, stream.flush),
        )

    def write(self, text: str) -> int:
        """Write a text, changed."""
        return self._stream.write(self._change(text))


class _Output(Console):
    """A console whose reader may leave early, as `head` does: what was decided stays decided.

    Texts are never markup: ids and names come from files. Control characters go before a text is coloured, commands
    of CI servers after it is laid out, for to break a line can make one.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        file = cast("TextIO", _Through(stream, inert))
        super().__init__(file=file, highlight=False, markup=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of what is printed, without control characters but for our own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(safe(piece.text), piece.style)

    def on_broken_pipe(self) -> None:
        """Write the rest to nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def out() -> Console:
    """Return the console of results; a pipe gets plain text, as wide as it comes."""
    console = _Output(sys.stdout)
    return console if console.is_terminal else _Output(sys.stdout, width=160)


def notes() -> Console:
    """Return the console of progress and notes."""
    return _Output(sys.stderr)


def complain(error: object) -> None:
    """Print an error, which may quote anything."""
    print(printable(str(error)), file=sys.stderr)


def files() -> TextIO:
    """Return where a file is written when nobody names one: exact in a pipe, and made safe on a terminal."""
    return cast("TextIO", _Through(sys.stdout, printable)) if sys.stdout.isatty() else sys.stdout


def print_json(text: str) -> None:
    """Print JSON; its value stays exact."""
    print(printable_json(text))


def store_of(given: str | None) -> str:
    """Return which store is meant, in a form that shows no password."""
    return given or Place(settings().store)


def existing(path: Path) -> Path:
    """Return a path that names a file.

    Raises:
        UsageError: there is none.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the suite file in it")
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    return path
