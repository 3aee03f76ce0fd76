"""Text in the form in which a database keeps it: the types of all columns of text, and values as JSON text.

JSON text is exact, lone surrogates and NaN included; an object that JSON does not know is written as its `str`.
In a column of plain text a lone surrogate is escaped permanently, and in PostgreSQL the character U+0000 as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python
from sqlalchemy import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from vivavoce.records.redaction import keys_of_environment


def storable(text: str, *, nul: bool) -> str:
    r"""Return a text that a database takes: a lone surrogate becomes the six characters `\ud800`.

    Without `nul`, U+0000 becomes the six characters `\u0000`.
    """
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode()
    return text if nul else text.replace("\0", "\\u0000")


def text_for(dialect: Dialect) -> Callable[[str], str]:
    """Return what makes a text storable in one of the two databases, for rows that go past the types of columns."""
    return partial(storable, nul=dialect.name != "postgresql")


class Text(TypeDecorator[str]):
    """Text that either database takes; without `nul`, U+0000 is escaped in SQLite, too.

    With `cut_keys`, keys of the environment are cut out of what is stored: in each column that people write into. Other
    columns get records, out of which keys are cut as a whole, with those that the suite of a run names.
    """

    impl = sa.Text
    cache_ok = True

    def __init__(self, *, nul: bool = True, cut_keys: bool = False) -> None:
        super().__init__()
        self.nul = nul
        self.cut_keys = cut_keys

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return a value as it is stored, and as it is looked for."""
        if value is None:
            return None
        text = keys_of_environment().cut(value) if self.cut_keys else value
        return storable(text, nul=self.nul and dialect.name != "postgresql")


class Name(Text):
    """Text that rows are found and ordered by, in both databases by its bytes and not by the customs of a language."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type that a database has for it."""
        return dialect.type_descriptor(sa.String(collation="C" if dialect.name == "postgresql" else None))


def json_text(value: object) -> str | None:
    """Return a value as JSON text, None as NULL."""
    if value is None:
        return None
    try:
        return to_json(value, inf_nan_mode="constants", fallback=str).decode()
    except PydanticSerializationError:  # text that is not UTF-8: json escapes it
        plain = to_jsonable_python(value, inf_nan_mode="constants", fallback=str, bytes_mode="base64")
        return json.dumps(plain)
