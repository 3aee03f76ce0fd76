"""Asking before something is changed for good."""

from __future__ import annotations

import sys

import typer

from vivavoce.cli.output import notes
from vivavoce.errors import UsageError


def confirm(question: str, *, yes: bool) -> None:
    """Ask a question on the terminal unless `yes` answers it.

    Raises:
        UsageError: nobody can answer, because standard input is not a terminal.
        Exit: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; add --yes to go on without the question")
    if not typer.confirm(question, err=True):
        notes().print("nothing was changed")
        raise typer.Exit(0)
