"""The causes of a verdict in the terminal, above the conversation."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from vivavoce.records.run import Outcome
from vivavoce.report.causes import Cause, causes
from vivavoce.report.tables import Labelled
from vivavoce.report.text import one_line
from vivavoce.safe_text import safe

LONG = 8
"""Turns from which a conversation has its causes listed above it; those of a shorter one are in sight anyway."""
MOST = 8
"""Causes that are listed."""
_WIDTH = 200


def cause_lines(outcome: Outcome) -> Iterator[RenderableType]:
    """Yield what failed in a long conversation, nothing if it passed."""
    found = causes(outcome) if len(outcome.attempt.trajectory.turns) >= LONG else []
    if not found:
        return
    yield Text("── what failed", style="dim")
    yield from map(_line, found[:MOST])
    if len(found) > MOST:
        yield Text(f"    … and {len(found) - MOST:,} more", style="dim")


def _line(one: Cause) -> Labelled:
    mark, style = ("!", "yellow") if one.state == "error" else (" ", "red")
    known = ", ".join(word for word in (one.whose, one_line(one.agent)) if word)
    whose = f" ({known})" if known else ""
    name = f"{safe(one.grader)}: " if one.grader else ""
    return Labelled(Text(f" {mark}  {one.place}{whose}  ", style=style), Text(one_line(f"{name}{one.text}", _WIDTH)))
