"""Realism for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from vivavoce.report.realism.kinds import Kind
from vivavoce.report.realism.realism import Realism
from vivavoce.report.realism.tables import (
    CHANGE_HEADS,
    HEADS,
    apart_lines,
    change_cells,
    change_lines,
    feature_cells,
    kind_line,
    sides,
)
from vivavoce.report.realism.unlike import Unlike
from vivavoce.report.tables import Labelled, figures_table
from vivavoce.report.text import count
from vivavoce.safe_text import safe

SHOWN = 3
"""Conversations that are shown of each side."""

_RANKS = (0, 0, 0, 3, 2, 4)
"""Which columns a narrow terminal drops first: those with the highest number."""


def blocks(found: Realism, limit: int) -> Iterator[RenderableType]:
    """Yield what is printed, with so many features at most."""
    yield Text(found.finding, style="bold")
    yield Text()
    for line in (*sides(found), *apart_lines(found)):
        yield Text(line)
    if found.change is not None:
        yield from (Text(line) for line in change_lines(found.change))
        if found.change.features:
            yield Text()
            yield figures_table(CHANGE_HEADS, [change_cells(one) for one in found.change.features])
    yield Text()
    yield figures_table(HEADS, [feature_cells(one) for one in found.features[:limit]], _RANKS)
    if (more := len(found.features) - limit) > 0:
        yield Text(f"and {count(more, 'more feature')}; --limit shows more", style="dim")
    yield from _unlike("simulated conversations that are least like real ones", found.least_likely)
    yield from _unlike("real conversations that are least like simulated ones", found.least_resembled)
    yield from _kinds(found.kinds)
    if found.notes:
        yield Text()
    for note in found.notes:
        yield Labelled(Text("note: "), Text(safe(note)))


def _unlike(title: str, conversations: Sequence[Unlike]) -> Iterator[RenderableType]:
    if not conversations:
        return
    yield Text()
    yield Text(title, style="bold")
    for one in conversations[:SHOWN]:
        yield Labelled(Text("  "), Text(f"{safe(one.name)}  “{safe(one.says)}”"))
        for reason in one.reasons:
            yield Labelled(Text("    "), Text(reason))
        if one.command is not None:
            yield Text(f"    {one.command}", style="dim")


def _kinds(kinds: Sequence[Kind]) -> Iterator[RenderableType]:
    if not kinds:
        return
    yield Text()
    yield Text("kinds of real users", style="bold")
    for one in kinds:
        yield Labelled(Text(f"  {one.number}  "), Text(kind_line(one)))
        yield Labelled(Text("     "), Text("; ".join(one.marks) or "like the others in all features"))
        yield Labelled(Text("     "), Text(f"such as {safe(one.example)}: “{safe(one.says)}”", style="dim"))
