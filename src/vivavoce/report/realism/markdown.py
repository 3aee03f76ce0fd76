"""Realism as Markdown, for a pull request; what users and files say stands in code spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vivavoce.report.markdown import code, table
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

WIDEST = 400
"""Characters of a line that stands in a code span."""


def markdown_realism(found: Realism) -> str:
    """Return what realism says as Markdown; an empty line ends it, so that more can follow."""
    return "\n".join([*_lines(found), ""])


def _lines(found: Realism) -> Iterator[str]:
    yield from (f"**{code(found.finding, WIDEST)}**", "")
    yield from (f"- {code(line, WIDEST)}" for line in sides(found))
    yield from (f"- {line}" for line in apart_lines(found))
    if found.change is not None:
        yield from (f"- {code(line, WIDEST)}" for line in change_lines(found.change))
        if found.change.features:
            yield ""
            yield from table(list(CHANGE_HEADS), "lrrrl", (change_cells(one) for one in found.change.features))
    yield ""
    yield from table(list(HEADS), "lrrrrl", (feature_cells(one) for one in found.features))
    yield from _unlike("Simulated conversations that are least like real ones", found.least_likely)
    yield from _unlike("Real conversations that are least like simulated ones", found.least_resembled)
    if found.kinds:
        yield from ("", "Kinds of real users", "")
        for one in found.kinds:
            yield f"{one.number}. {kind_line(one)}: {'; '.join(one.marks)}; such as {code(one.example)}"
    if found.notes:
        yield ""
    yield from (f"- {code(note, WIDEST)}" for note in found.notes)


def _unlike(title: str, conversations: Sequence[Unlike]) -> Iterator[str]:
    if conversations:
        yield from ("", title, "")
    for one in conversations:
        yield f"- {code(one.name)}: {code(one.says)}: {'; '.join(one.reasons)}"
