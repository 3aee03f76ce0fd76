"""Where the command line writes: results to standard output, progress and notes to standard error.

Names, ids, errors and conversations come from files, targets and models. Everything printed for people passes through
here and is made safe as the last step before writing: it can control neither a terminal nor the log of a CI server.
Only files for programs that go into a pipe stay unchanged, byte for byte.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
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


def _place(address: str | None) -> str | None:
    return address and Place(address)


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|ADDRESS",
        callback=_place,
        help="The store: a database file or postgresql://user@host/database. Default: VIVAVOCE_STORE, else "
        ".vivavoce/vivavoce.db.",
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
    """A console whose reader may stop early, as `head` does; the exit code stays the same.

    Texts are never markup: ids and names come from files. Control characters are removed before a text is coloured;
    commands of CI servers are broken up after line breaks are set, because a line break can create such a command.
    """

    def __init__(self, stream: TextIO, width: int | None = None) -> None:
        file = cast("TextIO", _Through(stream, inert))
        super().__init__(file=file, highlight=False, markup=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces of what is printed, without any control characters except our own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(safe(piece.text), piece.style)

    def on_broken_pipe(self) -> None:
        """Discard the rest of the output."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def out() -> Console:
    """Return the console of results; a pipe gets plain text, without line wrapping."""
    console = _Output(sys.stdout)
    return console if console.is_terminal else _Output(sys.stdout, width=160)


def notes() -> Console:
    """Return the console of progress and notes; results that were printed before come first."""
    with suppress(BrokenPipeError):  # whoever reads the results has gone; main says what that means
        sys.stdout.flush()
    return _Output(sys.stderr)


def print_lines(lines: Iterable[RenderableType]) -> None:
    """Print a report: its text as it is, its tables as wide as the window."""
    console = out()
    for line in lines:
        if isinstance(line, str):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        else:
            console.print(line)


def complain(error: object) -> None:
    """Print an error, which may quote untrusted text."""
    print(printable(str(error)), file=sys.stderr)


def files() -> TextIO:
    """Return where a file is written if no path is named: unchanged in a pipe, made safe on a terminal."""
    return cast("TextIO", _Through(sys.stdout, printable)) if sys.stdout.isatty() else sys.stdout


def print_json(text: str) -> None:
    """Print JSON; its value does not change."""
    print(printable_json(text))


def store_of(address: str | None) -> str:
    """Return the name of the store, without a password."""
    return address or Place(settings().store)


def existing(path: Path) -> Path:
    """Return a path that names a file.

    Raises:
        UsageError: the file does not exist, or is a folder.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file in it, or several: {path / '*.yaml'}")
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    return path


def confirm(question: str, *, yes: bool) -> None:
    """Ask a question on the terminal unless `yes` answers it.

    Raises:
        UsageError: nobody can answer, because standard input is not a terminal.
        Exit: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Not in a terminal; add --yes to confirm")
    if not typer.confirm(question, err=True):
        notes().print("nothing was changed")
        raise typer.Exit(0)
