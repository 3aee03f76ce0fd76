"""The cells of a table (CSV, Parquet): how a value becomes text and is read back.

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
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse


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
    value = _parsed(text) if text[:1] == "[" and text[-1:] == "]" else None
    return cast("list[Any]", value) if isinstance(value, list) else None


def _as_string(text: str) -> str | None:
    value = _parsed(text) if text[:1] == '"' and text[-1:] == '"' else None
    return value if isinstance(value, str) else None


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except BrokenJson:
        return None
