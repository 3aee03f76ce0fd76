"""`viva export`: write a run to a file for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vivavoce.cli.output import StoreOption, files, notes, store_of
from vivavoce.report.export import export, export_formats, format_of
from vivavoce.store.store import Store


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help=f"One of {', '.join(export_formats())}; default: from the file extension of --output, else json.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The file; the folder for letta, langfuse, phoenix, otel; default: standard output.",
        ),
    ] = None,
    grading: Annotated[str | None, typer.Option(help="The grading to export; default: the newest.")] = None,
    store: StoreOption = None,
) -> None:
    """Write a run to a file for another program.

    json and jsonl contain everything; csv and parquet have one row per score; junit is for CI servers; html is one page
    to share; markdown is for a pull request; github annotates a workflow; recordings replay the tool calls in another
    run; conversations are dataset rows with the verdicts as labels; letta is a folder in the layout of letta-evals;
    langfuse, phoenix and otel are folders with what viva export publish would send.
    """
    with Store.open(store_of(store), create=False) as opened:
        found = opened.run(run)
        scores = opened.grading(found.id, grading)
        form = format_of(to, output)
        lines = export(opened, found, scores, form, output if output is not None else files())
    if output is not None:
        what = f"the run {found.id}" if form == "recordings" else f"the scores {scores.id}"
        notes().print(f"wrote {output}: {form}, {what}", soft_wrap=True)
    for line in lines:
        notes().print(line, soft_wrap=True)
