"""`viva runs`: list the stored runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, out, print_json, store_of
from vivavoce.records.run import Grading, Run
from vivavoce.report.headline import headline
from vivavoce.report.strict_json import strict_json
from vivavoce.report.tables import Column, FittingTable
from vivavoce.report.terminal import number
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

COLUMNS = (
    Column("run"),
    Column("started", rank=3),
    Column("status", rank=2),
    Column("verdict"),
    Column("conversations", "right", rank=4),
    Column("headline", rank=1),
)


def command(
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of runs.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    store: StoreOption = None,
) -> None:
    """List the stored runs, newest first.

    Each line has the verdict of the run and the mean score of its gate's grader, else of its reward.
    """
    with Store.open(store_of(store), create=False) as opened:
        found = [(run, opened.grading(run.id) if opened.gradings(run.id) else None) for run in opened.runs(limit)]
    if as_json:
        for run, grading in found:
            print_json(strict_json(_data(run, grading)))
    else:
        out().print(FittingTable(COLUMNS, [[*map(Text, _cells(run, grading))] for run, grading in found]))


def _data(run: Run, grading: Grading | None) -> dict[str, object]:
    """Return a run with the figures of its newest scores."""
    summary = (grading and grading.summary) or {}
    numbers = {name: summary.get(name) for name in ("attempts", "failed_attempts", "graders")}
    verdict = {"grading": grading and grading.id, "verdict": grading and grading.verdict}
    return {**run.model_dump(exclude={"spec"}), **verdict, **numbers}


def _cells(run: Run, grading: Grading | None) -> list[str]:
    status = run.status if run.partial_of is None else f"{run.status}, partial"
    started = datetime.fromtimestamp(run.started_at).strftime("%Y-%m-%d %H:%M")
    if grading is None or grading.summary is None:
        return [run.id, started, status, "–", "", ""]
    summary = Summary.model_validate(grading.summary)
    head = headline(summary, grading)
    headline_mean = f"{safe(head.name)} {number(head.mean)}" if head else ""
    return [run.id, started, status, grading.verdict or "no gate", str(summary.attempts), headline_mean]
