"""Text as people and programs read it: safe lines and tables for a terminal, numbers, times, and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from vivavoce.comparing.thresholds import score_text, share_text
from vivavoce.safe_text import encodable, safe

_COMMAND = re.compile(r"(?<![^\r\n])((?:\x1b\[[0-9;]*m|[^\S\r\n])*)::(?=\w)|##(?=\w*\[)")
"""What the log of a CI server reads as a command: `::error` after spaces, `##[error]` and `##vso[…]` anywhere.

Source: `ActionCommand.TryParseV2` and `TryParse` of GitHub's runner; "Logging commands" of Azure Pipelines.
"""
_IN_JSON = re.compile(r"[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]|(?<=#)#(?=\w*\[)")


def inert(lines: str) -> str:
    """Return printed lines without CI commands: `::` at the start of a line becomes `: :`, `##[` becomes `# #[`.

    It needs whole printed lines, because only these show what begins a line.
    """
    return _COMMAND.sub(lambda match: "# #" if match[1] is None else f"{match[1]}: :", lines)


def printable(lines: str) -> str:
    """Return lines that control neither a terminal nor the log of a CI server."""
    return inert(safe(lines))


def printable_json(text: str) -> str:
    r"""Return JSON of the same value that is safe to print: control characters and CI commands are escaped as `\u…`."""
    return _IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 sample`, `2 samples`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_phrases(phrases: Sequence[str], most: int = 3) -> str:
    """Return one or more phrases as a list in a sentence, which names this many of them at most."""
    parts = [*phrases[:most], *([f"{len(phrases) - most:,} more"] if len(phrases) > most else [])]
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]


def one_line(text: str, width: int = 100) -> str:
    """Return a text as one line of at most `width` characters."""
    line = " ".join(safe(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


GAP = 2
"""Blanks between two columns."""
ENOUGH = 20
"""Minimum width of a column of sentences, in characters."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; in a narrow window those with the highest `rank` are left out first, and 0 stays always.

    `flows` is for sentences, which may take several lines.
    """

    head: str
    justify: JustifyMethod = "left"
    rank: int = 0
    flows: bool = False


@dataclass(frozen=True, slots=True)
class FittingTable:
    """A table that drops columns until it fits, and names them; a text that still does not fit is wrapped, not cut."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    header: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines, without blanks at their ends."""
        visible_columns = self._fitting(options.max_width)
        table = Table(box=None, show_header=self.header, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
        for column in (self.columns[i] for i in visible_columns):
            figures = column.justify == "right"
            table.add_column(column.head, justify=column.justify, overflow="fold", no_wrap=figures)
        for row in self.rows:
            table.add_row(*(row[i] for i in visible_columns))
        for line in console.render_lines(table, options, pad=False):
            yield from strip_trailing_blanks(line)
            yield Segment.line()
        hidden = [column.head for i, column in enumerate(self.columns) if i not in visible_columns and column.head]
        if hidden and self.header:
            heads = ", ".join(dict.fromkeys(hidden))
            yield Labelled(Text(), Text(f"not shown, the terminal is too narrow: {heads}", style="dim"))

    def _fitting(self, width: int) -> list[int]:
        visible_columns = list(range(len(self.columns)))
        while self._width(visible_columns) > width and (highest := max(self.columns[i].rank for i in visible_columns)):
            visible_columns = [i for i in visible_columns if self.columns[i].rank != highest]
        return visible_columns

    def _width(self, visible_columns: Sequence[int]) -> int:
        return sum(self._width_of(i) + GAP for i in visible_columns) - GAP

    def _width_of(self, column: int) -> int:
        heads = [cell_len(self.columns[column].head)] if self.header else [0]
        widest = max([*heads, *(row[column].cell_len for row in self.rows)])
        return min(widest, ENOUGH) if self.columns[column].flows else widest


def figures_table(heads: Sequence[str], rows: Sequence[Sequence[str]], ranks: Sequence[int] = ()) -> FittingTable:
    """Return a table of figures with their names in the first column.

    `ranks` says which columns a narrow window leaves out, as `Column` does; those that it does not reach stay.
    """
    known = dict(enumerate(ranks))
    columns = [Column(head, "right" if place else "left", known.get(place, 0)) for place, head in enumerate(heads)]
    return FittingTable(columns, [[Text(cell) for cell in row] for row in rows])


@dataclass(frozen=True, slots=True)
class Labelled:
    """Text next to a label; every line of it begins where the first one does, or below a label that leaves no room."""

    label: Text
    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a line of text for each line."""
        width = options.max_width
        beside = width - self.label.cell_len >= min(ENOUGH, self.text.cell_len)
        indent = Text(" " * (self.label.cell_len if beside else 2 * GAP))
        wrapped = list(self.text.wrap(console, max(width - indent.cell_len, 1), overflow="fold"))
        heads = [self.label] if beside else list(self.label.wrap(console, width, overflow="fold"))
        first = [Text.assemble(heads[0], wrapped.pop(0))] if beside and wrapped else heads
        for line in (*first, *(indent + line for line in wrapped)):
            line.rstrip()
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def strip_trailing_blanks(line: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the segments of a line without the blanks at its end."""
    last = next((i for i in reversed(range(len(line))) if line[i].text.strip(" ")), -1)
    yield from line[:last] if last > 0 else ()
    if last >= 0:
        yield Segment(line[last].text.rstrip(" "), line[last].style)


def score(value: float | None, digits: int = 2) -> str:
    """Return a score, or a dash if there is none."""
    return "–" if value is None else score_text(value, digits)


def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as a percentage."""
    return "–" if share is None else share_text(share)


def span(seconds: float | None) -> str:
    """Return a duration in seconds as text, in a suitable unit."""
    if seconds is None:
        return "–"
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def clock(seconds: float) -> str:
    """Return the time of day, of seconds since the epoch."""
    return datetime.fromtimestamp(seconds).strftime("%H:%M")


def day(seconds: float) -> str:
    """Return the day, of seconds since the epoch, with its name."""
    then = datetime.fromtimestamp(seconds)
    return f"{then:%A} {then.day} {then:%B %Y}"


def date(seconds: float) -> str:
    """Return the day without its name, of seconds since the epoch."""
    then = datetime.fromtimestamp(seconds)
    return f"{then.day} {then:%b %Y}"


def indent_json(data: Any) -> str:
    """Return data as JSON that people read."""
    return safe(json.dumps(data, indent=2, ensure_ascii=False, default=str))


_write = partial(to_json, inf_nan_mode="strings", serialize_unknown=True, bytes_mode="base64")


def strict_json(value: object) -> str:
    r"""Return a value as one line of JSON.

    NaN and the infinities become the strings "NaN", "Infinity" and "-Infinity", a lone surrogate the six characters
    `\ud800`, and an object unknown to JSON its `str`.
    """
    try:
        return _write(value).decode()
    except PydanticSerializationError:
        return _write(_encodable(value)).decode()


def record_json(record: BaseModel) -> str:
    """Return a record as indented JSON; a lone surrogate becomes six characters."""
    try:
        return record.model_dump_json(indent=2)
    except PydanticSerializationError:
        return json.dumps(_encodable(record.model_dump()), indent=2, ensure_ascii=False, default=str)


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return encodable(value)
        case Mapping():
            return {_encodable(key): _encodable(entry) for key, entry in cast("Mapping[Any, Any]", value).items()}
        case BaseModel():
            return _encodable(value.model_dump())
        case list() | tuple():
            return [_encodable(entry) for entry in cast("Sequence[Any]", value)]
        case _:
            return value
