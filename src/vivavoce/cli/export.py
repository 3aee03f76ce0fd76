"""`viva export`: a run as a file for another program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, store_of
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.report.export import FORMATS, export
from vivavoce.report.letta_layout import write_letta_layout
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its name, the start of it, or 'latest'.")] = "latest",
    *,
    to: Annotated[str, typer.Option("--format", "-f", help=f"One of {', '.join(FORMATS)}, letta.")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; standard output unless named.")
    ] = None,
    grading: Annotated[str | None, typer.Option(help="A set of scores; the newest unless named.")] = None,
    store: StoreOption = None,
) -> None:
    """Write a run as a file for another program.

    json and jsonl hold everything, csv and parquet a row for each score, junit is for CI servers, markdown for a pull
    request, letta is the folder that letta-evals writes.
    """
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        scores = opened.grading(found.id, grading)
        if to == "letta":
            write_letta_layout(opened, found, scores, output or Path(found.id))
        elif to not in FORMATS:
            raise UsageError(f"no export format '{to}'{did_you_mean(to, [*FORMATS, 'letta'])}")
        else:
            export(opened, found, scores, to, output if output is not None else sys.stdout)
