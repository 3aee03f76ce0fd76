"""`viva dataset`: versions of a dataset, and rows from stored conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from vivavoce.cli.options import ConversationArgument
from vivavoce.cli.output import StoreOption, existing, notes, out, print_json, store_of
from vivavoce.errors import UsageError
from vivavoce.report.capture import capture, find_conversation
from vivavoce.report.markdown import code, table
from vivavoce.report.text import count, one_line, strict_json
from vivavoce.samples.dataset_file import (
    MISSING,
    VERSION,
    Content,
    Difference,
    FieldChange,
    RowKey,
    append_row,
    difference,
    keep_version,
    kept_versions,
    read_content,
    read_version,
)
from vivavoce.store.store import Store

What = Literal["keep", "list", "show", "diff"]


def command(
    what: Annotated[What, typer.Argument(help="The action.", show_default=False)],
    dataset: Annotated[Path, typer.Argument(help="A dataset: JSONL, JSON, CSV or Parquet.", show_default=False)],
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VERSION|FILE]...",
            help="show: a version. diff: a version, two versions, or another file; default: the newest saved version.",
            show_default=False,
        ),
    ] = None,
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="diff: print Markdown, for a pull request.")] = False,
) -> None:
    """Save a version of a dataset, list the versions, print the rows of one, or show which rows and fields changed.

    A version depends on the content, not on the layout of the file. A suite pins one with dataset: {path: FILE,
    version: VERSION}; different content is then an error. The copies are in FILE.versions; commit them with the
    dataset.
    """
    if markdown and what != "diff":
        raise UsageError("--markdown is for: viva dataset diff")
    named = others or []
    most = {"keep": 0, "list": 0, "show": 1, "diff": 2}[what]
    if len(named) > most:
        rule = f"{count(most, 'version')} at most" if most else "a dataset alone"
        raise UsageError(f"viva dataset {what} takes {rule}; got {', '.join(named)}")
    existing(dataset)
    if what == "keep":
        _keep(dataset)
    elif what == "list":
        _list(dataset)
    elif what == "show":
        for row in (_content(dataset, named[0]) if named else read_content(dataset)).rows.values():
            print_json(strict_json(row))
    else:
        _diff(dataset, named, markdown)


def _keep(dataset: Path) -> None:
    kept, is_new = keep_version(dataset)
    out().print(f"{kept.version} {'kept' if is_new else 'is kept already'}: {kept.path}", soft_wrap=True)
    notes().print(f"pin it in a suite: dataset: {{path: {dataset}, version: {kept.version}}}", soft_wrap=True)


def _list(dataset: Path) -> None:
    present = read_content(dataset)
    kept = kept_versions(dataset)
    for one in kept:
        rows = count(len(read_version(dataset, one.version).rows), "row")
        out().print(f"{one.number}  {one.version}  {rows}{'  the file now' * (one.version == present.version)}")
    if all(one.version != present.version for one in kept):
        rows, command_line = count(len(present.rows), "row"), f"viva dataset keep {quote(str(dataset))}"
        out().print(f"–  {present.version}  {rows}  the file now, not kept: {command_line}", soft_wrap=True)


def _diff(dataset: Path, named: Sequence[str], markdown: bool) -> None:
    found = difference(*_sides(dataset, named))
    if markdown:
        out().print(difference_markdown(found), soft_wrap=True, end="")
        return
    for line in difference_lines(found):
        out().print(line, soft_wrap=True)


def _sides(dataset: Path, named: Sequence[str]) -> tuple[Content, Content]:
    """Return the contents to compare, the earlier one first."""
    if not named:
        present, kept = read_content(dataset), kept_versions(dataset)
        if not kept:
            raise UsageError(f"{dataset}: no saved version yet; save one with: viva dataset keep {quote(str(dataset))}")
        return read_version(dataset, kept[-1].version), present
    if len(named) == 2:
        return _content(dataset, named[0]), _content(dataset, named[1])
    other = _content(dataset, named[0])
    present = read_content(dataset)
    return (other, present) if VERSION.fullmatch(named[0]) else (present, other)


def _content(dataset: Path, name: str) -> Content:
    """Return a kept version of a dataset, or the content of another file."""
    return read_version(dataset, name) if VERSION.fullmatch(name) else read_content(existing(Path(name)))


WIDTH = 200
"""Characters of a value that are shown."""

UNRELATED = "The two have no common rows: are these different datasets?"


def difference_lines(found: Difference) -> Iterator[str]:
    """Yield the difference row by row, field by field."""
    yield f"{_head(found.a)} → {_head(found.b)}: {found.describe()}"
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


def capture_conversation(
    conversation: ConversationArgument,
    *,
    to: Annotated[
        Path | None, typer.Option("--to", help="The JSONL dataset to append the row to; default: print it.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="The target, if the run has several.")] = None,
    region: Annotated[
        str | None, typer.Option(help="The country, such as US, of phone numbers without a + prefix.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Turn a stored conversation into a dataset row, so that every run repeats it.

    The row has the user's messages and what was known about the right answer. Keys, e-mail addresses, phone, card and
    account numbers are removed, and the command lists what it removed. If there are several trials, the first failed
    trial is used.
    """
    with Store.open(store_of(store), create=False) as opened:
        run, outcome = find_conversation(opened, conversation, target)
    captured = capture(run, outcome.attempt, region)
    if to is None:
        print_json(strict_json(captured.row))
    else:
        added = append_row(to, captured.row)
        what = "added as" if added.is_new else "is there already as"
        out().print(f"{to}: {what} '{added.id}'", soft_wrap=True)
    for note in captured.notes():
        notes().print(note, soft_wrap=True)
