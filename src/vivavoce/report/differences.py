"""The difference between two datasets, in the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.report.markdown import code, table
from vivavoce.report.strict_json import strict_json
from vivavoce.report.text import count, one_line
from vivavoce.samples.dataset_file import MISSING, Content, Difference, FieldChange, RowKey

WIDTH = 200
"""Characters of a value that are shown."""

UNRELATED = "The two have no common rows: are these different datasets?"


def difference_lines(found: Difference) -> Iterator[str]:
    """Yield the difference row by row, field by field."""
    yield f"{_head(found.a)} → {_head(found.b)}: {found.in_words()}"
    if found.unrelated:
        yield UNRELATED
    for sign, keys, content in (("+", found.added, found.b), ("-", found.removed, found.a)):
        yield from (f"{sign} {key}  {_row(content, key)}" for key in keys)
    for change in found.changed:
        yield f"~ {change.key}"
        yield from (f"    {field.path}: {_change(field)}" for field in change.fields)


def difference_markdown(found: Difference) -> str:
    """Return the difference as Markdown; what people wrote is in code spans."""
    return "\n".join([*_markdown(found), ""])


def _markdown(found: Difference) -> Iterator[str]:
    yield f"**{code(found.b.path.name)}: {found.b.version} after {found.a.version}**"
    counts = [
        *(f"{count(len(keys), 'row')} {what}" for keys, what in _kinds(found) if keys),
        *(["the order of rows changed"] if found.moved else []),
    ]
    yield from ("", ", ".join(counts) or "No difference.")
    if found.unrelated:
        yield from ("", UNRELATED)
    rows = [
        *([code(str(key)), "added", "", code(_row(found.b, key), WIDTH)] for key in found.added),
        *([code(str(key)), "removed", code(_row(found.a, key), WIDTH), ""] for key in found.removed),
        *(
            [code(str(change.key)), code(field.path), _span(field.before), _span(field.after)]
            for change in found.changed
            for field in change.fields
        ),
    ]
    if rows:
        yield ""
        yield from table(["row", "what", "before", "after"], "llll", rows)


def _kinds(found: Difference) -> Iterator[tuple[list[object], str]]:
    yield list(found.added), "added"
    yield list(found.removed), "removed"
    yield list(found.changed), "changed"


def _head(content: Content) -> str:
    return f"{content.path.name} {content.version} ({count(len(content.rows), 'row')})"


def _row(content: Content, key: RowKey) -> str:
    row = {name: value for name, value in content.rows[key].items() if name not in ("id", "sample_id")}
    return one_line(strict_json(row), WIDTH)


def _change(field: FieldChange) -> str:
    return f"{_value(field.before)} → {_value(field.after)}"


def _value(value: object) -> str:
    return "nothing" if value is MISSING else one_line(strict_json(value), WIDTH)


def _span(value: object) -> str:
    return "nothing" if value is MISSING else code(_value(value), WIDTH)
