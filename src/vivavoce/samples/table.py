"""`Tabular`: what can be had as tables of typed columns, for pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.files.frames import arrow_table, pandas_table, polars_table
from vivavoce.plugins import lazy
from vivavoce.safe_text import encodable

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame


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
        made = self._table(table)
        return pandas_table(made.columns, made.types)

    def to_polars(self, table: str | None = None) -> PolarsFrame:
        """Return one of the `TABLES` as a polars frame (needs the extra `[polars]`)."""
        made = self._table(table)
        return polars_table(made.columns, made.types)

    def to_arrow(self, table: str | None = None) -> ArrowTable:
        """Return one of the `TABLES` as an Arrow table (needs the extra `[frames]`)."""
        made = self._table(table)
        return arrow_table(made.columns, made.types)

    def _table(self, name: str | None) -> Table:
        chosen = self.TABLES[0] if name is None else name
        if chosen not in self.TABLES:
            raise UsageError(f"no table '{chosen}'{did_you_mean(chosen, self.TABLES)}")
        return cast("Table", lazy(self.TABLES_FROM)(self, chosen))
