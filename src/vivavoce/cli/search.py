"""`viva runs search`: find words in conversations, in reasons of scores, in comments and in what is said of runs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, out, print_json, store_of
from vivavoce.records.score import conversation_label, to_number
from vivavoce.report.text import strict_json
from vivavoce.safe_text import safe
from vivavoce.store.search.query import marked, parse_query
from vivavoce.store.search.search import Hit
from vivavoce.store.store import Store

_RUNS = 5
"""Runs that are listed, at most."""


def command(
    *,
    query: Annotated[str, typer.Argument(help="Words and operators; quote them for the shell.")],
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of hits.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per hit.")] = False,
    store: StoreOption = None,
) -> None:
    """Search all conversations, reasons, comments and runs for words, newest first.

    Runs are found by their id, suite, target, title, notes and tags.

    Operators narrow the search: run:latest suite:"support bot" target:bot grader:goal state:fail tag:slow role:tool
    before:2026-11-01 after:2026-10-01. Quotation marks keep words together, a leading - excludes. Write -- before a
    query that begins with -.
    """
    asked = parse_query(query)
    with Store.open(store_of(store), create=False) as opened:
        comments = opened.searcher.find(asked, kind="comment", limit=limit).hits
        hits = [*comments, *opened.search(query, limit=limit)]
        runs = [] if as_json else opened.browse.named_runs(opened.searcher.runs(asked)[:_RUNS])
    if as_json:
        for hit in hits:
            print_json(strict_json(_data(hit)))
        return
    for run in runs:
        title = f", {safe(run.title)}" if run.title else ""
        out().print(Text(f"run {safe(run.id)}, {safe(run.suite)}{title}"))
    for hit in hits:
        out().print(Text(_place(hit), style="bold"))
        pieces = marked(" ".join(hit.snippet.text.split()), asked.words)
        out().print(Text.assemble("  ", *((safe(part), "reverse" if found else "") for part, found in pieces)))
    if not hits and not runs:
        out().print("nothing found")


def _place(hit: Hit) -> str:
    """Return where a hit is, as `viva show` takes it, with who said it."""
    where = f"{safe(hit.run_id)} {safe(conversation_label(hit.key.sample_id, hit.key.trial))}"
    turn = "" if hit.turn is None else f", turn {to_number(hit.turn)}"
    what = "reason of " if hit.grading_id else "" if hit.comment is None else "comment by "
    by = f", {what}{safe(hit.by)}" if hit.by else ""
    return f"{where}{turn}{by}"


def _data(hit: Hit) -> dict[str, object]:
    """Return a hit as the API has it."""
    where = {"run": hit.run_id, **hit.key._asdict(), "grading": hit.grading_id, "turn": hit.turn, "by": hit.by}
    where["comment"] = hit.comment
    return {**where, **hit.snippet._asdict()}
