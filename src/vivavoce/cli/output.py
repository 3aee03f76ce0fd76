"""Where the command line writes: results to standard output, progress and notes to standard error."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from vivavoce.errors import UsageError
from vivavoce.settings import settings
from vivavoce.store.address import Place


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


def _amount(given: float | None) -> float | None:
    if given is not None and not math.isfinite(given):
        raise UsageError(f"--max-cost is an amount of US dollars, got {given}")
    return given


CostOption = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        callback=_amount,
        help="Stop before the judges cost more US dollars than this.",
    ),
]


MaxErrorsOption = Annotated[
    str | None,
    typer.Option(
        "--max-errors",
        metavar="N|N%",
        help="How many conversations may have an error; more make the result inconclusive. None without a gate.",
    ),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Ask the judges even what they answered before, and keep no answer.")
]
ReplayOption = Annotated[
    bool, typer.Option("--replay", help="Ask no judge; take every verdict from the answers kept in the store.")
]


class _Output(Console):
    """A console whose reader may leave early, as `head` does: what was decided stays decided.

    Texts are never markup: ids and names come from files.
    """

    def on_broken_pipe(self) -> None:
        """Write the rest to nowhere."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def out() -> Console:
    """Return the console of results; a pipe gets plain text, as wide as it comes."""
    console = _Output(highlight=False, markup=False)
    return console if console.is_terminal else _Output(highlight=False, markup=False, width=160)


def notes() -> Console:
    """Return the console of progress and notes."""
    return Console(stderr=True, highlight=False, markup=False)


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
