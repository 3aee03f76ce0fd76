"""`viva runs`: what was run here."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated

import typer
from rich.table import Table

from vivavoce.cli.output import StoreOption, out, store_of
from vivavoce.records.run import Grading, Run
from vivavoce.report.terminal import number
from vivavoce.report.text import safe
from vivavoce.run.summary import Summary
from vivavoce.store.store import Store


def command(
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    store: StoreOption = None,
) -> None:
    """List runs, newest first, each with its verdict and the mean of its first grader."""
    with Store.open(store_of(store), create=False) as opened:
        runs = opened.runs(limit)
        if as_json:
            for run in runs:
                print(json.dumps(run.model_dump(mode="json", exclude={"spec"})))
            return
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for head in ("run", "started", "status", "verdict", "conversations", "headline"):
            table.add_column(head, justify="right" if head == "conversations" else "left")
        for run in runs:
            table.add_row(*_cells(run, opened.gradings(run.id)))
        out().print(table)


def _cells(run: Run, gradings: list[Grading]) -> list[str]:
    started = datetime.fromtimestamp(run.started_at).strftime("%Y-%m-%d %H:%M")
    last = gradings[-1] if gradings else None
    if last is None or last.summary is None:
        return [run.id, started, run.status, "–", "", ""]
    summary = Summary.model_validate(last.summary)
    first = summary.graders[0] if summary.graders else None
    headline = f"{safe(first.name)} {number(first.mean)}" if first else ""
    return [run.id, started, run.status, last.verdict or "no gate", str(summary.attempts), headline]
