"""`viva export`: a run as a file for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, files, notes, store_of
from vivavoce.report.export import FORMATS, export, format_of
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its name, its start or its end, or 'latest'.")] = "latest",
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", help=f"One of {', '.join(FORMATS)}; the ending of --output tells it too, else it is json."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file, or for letta the folder; standard output unless named."),
    ] = None,
    grading: Annotated[str | None, typer.Option(help="A set of scores; the newest unless named.")] = None,
    store: StoreOption = None,
) -> None:
    """Write a run as a file for another program.

    json and jsonl hold everything, csv and parquet a row for each score, junit is for CI servers, html is a page to
    send to somebody, markdown is for a pull request, github annotates a workflow, letta is the folder that letta-evals
    writes.
    """
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        scores = opened.grading(found.id, grading)
        form = format_of(to, output)
        export(opened, found, scores, form, output if output is not None else files())
    if output is not None:
        notes().print(f"wrote {output}: {form}, the scores {scores.id}", soft_wrap=True)
