"""Tables of typed columns, for pandas, polars and Arrow, and how a cell becomes text and is read back.

| value | cell |
|---|---|
| nothing | an empty cell (CSV), null (Parquet) |
| a text | the text itself |
| a list, an object | JSON text |
| a text that would read as something else | the text as a JSON string |

The last row is what makes the round trip exact. Three kinds of text need it: the empty text in CSV, where an empty cell
is nothing; in a column that holds texts or lists, a text that is itself a JSON list; and a text that is the JSON string
of such a text. Every other text, in quotes or not, stays what it is: `007`, `2024-05-01`, `null`, `"so he said"`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from vivavoce.comparing.json_values import BrokenJson, parse
from vivavoce.errors import UsageError, did_you_mean
from vivavoce.plugins import lazy
from vivavoce.safe_text import encodable

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame


def text_cell(text: str, *, lists: bool = False, empty_is_nothing: bool = True) -> str:
    """Write a text into a cell; `lists` says that the column may hold lists too."""
    if text == "" and not empty_is_nothing:
        return text
    return json.dumps(text, ensure_ascii=False) if _misleads(text, lists) else text


def read_text(cell: str, *, lists: bool = False) -> str | list[Any]:
    """Read a cell of a column of texts; `lists` says that the column may hold lists too."""
    if lists and (items := _as_list(cell)) is not None:
        return items
    quoted = _as_string(cell)
    return cell if quoted is None or not _misleads(quoted, lists) else quoted


def json_cell(value: object) -> str:
    """Write a list or an object into a cell.

    Raises:
        ValueError: it holds something that JSON does not have.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _misleads(text: str, lists: bool) -> bool:
    """Whether a cell with just this text would be read as something else."""
    if text == "" or (lists and _as_list(text) is not None):
        return True
    quoted = _as_string(text)
    return quoted is not None and _misleads(quoted, lists)


def _as_list(text: str) -> list[Any] | None:
    value = _parse(text) if text[:1] == "[" and text[-1:] == "]" else None
    return cast("list[Any]", value) if isinstance(value, list) else None


def _as_string(text: str) -> str | None:
    value = _parse(text) if text[:1] == '"' and text[-1:] == '"' else None
    return value if isinstance(value, str) else None


def _parse(text: str) -> Any:
    try:
        return parse(text)
    except BrokenJson:
        return None


ArrowTable: TypeAlias = Any
"""A `pyarrow.Table`; pyarrow does not come with types."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns in order, each with its type by Arrow's name for it; None is a missing cell."""

    columns: Mapping[str, Sequence[object]]
    types: Mapping[str, str]


def table_of(rows: Iterable[Mapping[str, object]], types: Mapping[str, str]) -> Table:
    """Return rows as a table with the columns of `types`; what a row lacks is missing."""
    columns: dict[str, list[object]] = {name: [] for name in types}
    for row in rows:
        for name, column in columns.items():
            cell = row.get(name)
            column.append(encodable(cell) if isinstance(cell, str) else cell)
    return Table(columns, types)


class Tabular:
    """Something that can be had as tables; its class names them in `TABLES`, and what makes one in `TABLES_FROM`.

    The first table is the one that is made where none is named.
    """

    __slots__ = ()
    TABLES: ClassVar[tuple[str, ...]]
    TABLES_FROM: ClassVar[str]

    def to_pandas(self, table: str | None = None) -> PandasFrame:
        """Return one of the `TABLES` as a pandas frame (needs the extra `[frames]`); a missing cell is `pandas.NA`."""
        source = self._table(table)
        return lazy("vivavoce.files.frames:pandas_table")(source.columns, source.types)

    def to_polars(self, table: str | None = None) -> PolarsFrame:
        """Return one of the `TABLES` as a polars frame (needs the extra `[polars]`)."""
        source = self._table(table)
        return lazy("vivavoce.files.frames:polars_table")(source.columns, source.types)

    def to_arrow(self, table: str | None = None) -> ArrowTable:
        """Return one of the `TABLES` as an Arrow table (needs the extra `[frames]`)."""
        source = self._table(table)
        return lazy("vivavoce.files.frames:arrow_table")(source.columns, source.types)

    def _table(self, name: str | None) -> Table:
        table_name = self.TABLES[0] if name is None else name
        if table_name not in self.TABLES:
            raise UsageError(f"no table '{table_name}'{did_you_mean(table_name, self.TABLES)}")
        return cast("Table", lazy(self.TABLES_FROM)(self, table_name))
