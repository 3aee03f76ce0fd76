"""`viva compare groups`: the conversations of a run in groups, and which groups differ from the others."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from vivavoce.cli.output import StoreOption, out, print_json, store_of
from vivavoce.features.groups.report import HEADS, Grouped, cells, group_conversations
from vivavoce.report.text import Column, FittingTable, record_json
from vivavoce.safe_text import safe
from vivavoce.store.store import Store

_RANKS = (0, 0, 2, 0, 3, 4)
"""Which columns a narrow terminal drops first: those with the highest number."""


def command(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning or end of its id, or 'latest'.")] = "latest",
    *,
    by: Annotated[
        str,
        typer.Option(
            help="What to group by: tag, target, trial, persona, or a field such as metadata.language.", metavar="FIELD"
        ),
    ] = "tag",
    grader: Annotated[
        str | None, typer.Option(help="Grader whose pass rate is compared; default: a conversation's worst score.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="A field such as metadata.case: samples with the same value are variants of one case.", metavar="FIELD"
        ),
    ] = None,
    filter_text: Annotated[
        str, typer.Option("--filter", help="Only these conversations: state:fail, tag:refund, turns>4, ….")
    ] = "",
    grading: Annotated[str | None, typer.Option(help="The grading to use; default: the newest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the groups as JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Compare the pass rates of groups in a run, and name the groups that differ from the others beyond chance.

    Each group is compared with all others that do not differ from each other. With many groups, some seem to differ by
    chance: on average, at most 5% of the named groups do. With --pairs, groups are compared within each case: the same
    question under two names, or in two dialects.
    """
    with Store.open(store_of(store), create=False) as opened:
        scores = opened.grading(opened.run(run).id, grading)
        result = group_conversations(opened, scores, by, filter_text, grader=grader, pairs=pairs)
    if as_json:
        print_json(record_json(result))
        return
    if result.groups:
        out().print(_table(result))
        out().print()
    out().print(Text(result.finding), soft_wrap=True)


def _table(result: Grouped) -> FittingTable:
    """Return a row for each group; those that differ from the others are bold."""
    heads = (Column(head, "right", rank=rank) for rank, head in zip(_RANKS, HEADS, strict=True))
    rows: list[list[Text]] = []
    for group in result.groups:
        style = "bold" if group.rest is not None and group.rest.differs else ""
        rows.append([Text(text, style=style) for text in (safe(group.name), *cells(group))])
    return FittingTable([Column(safe(result.by)), *heads], rows)
