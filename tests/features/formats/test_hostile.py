"""Wrong values at every place of every format's example: reported, never a crash, and never an invalid message."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest

from features.formats.examples import EXAMPLES, Example
from features.formats.translation import NOWHERE
from vivavoce.conversations.format import Loss, Place, Record, format_named
from vivavoce.conversations.shapes import check_calls
from vivavoce.features.formats.conversion import texts
from vivavoce.messages import read_messages

WRONG: tuple[Any, ...] = (
    None,
    5,
    True,
    1e300,
    "x",
    "\ud800",
    [],
    {},
    [None],
    [[]],
    {"type": 5},
    [{"type": []}],
    "[" * 9,
)
Path = tuple[Any, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value within a value."""
    yield path
    inner: Any = value
    for key in _keys(inner):
        yield from places(inner[key], (*path, key))


def _keys(value: Any) -> Iterable[Any]:
    return range(len(value)) if isinstance(value, list) else tuple(value) if isinstance(value, dict) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def replace_value(value: Any, path: Path, other: Any) -> Any:
    """Return a value with another one at a place, or without the key where that is `...`."""
    if not path:
        return other
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if other is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.deepcopy(other)
    return changed


def records_of(example: Example) -> list[Any]:
    return [json.loads(example.content)] if isinstance(example.content, bytes) else example.content


of_json = [example for example in EXAMPLES if example.suffix in (".json", ".jsonl")]


@pytest.mark.parametrize("example", of_json, ids=lambda item: f"{item.format}: {item.about}")
def test_wrong_values_are_told_or_read_and_never_crash(example: Example) -> None:
    format_ = format_named(example.format)
    assert format_.read is not None
    result: list[str] = []
    values_of = records_of(example)
    for path in places(values_of):
        for other in (*WRONG, ...) if path else ([], [None]):
            values = replace_value(values_of, path, other)
            if (crash := crashes(format_, values)) is not None:
                result.append(f"{path} = {other!r}: {crash}")
    assert not result, f"{len(result)} of them:\n" + "\n".join(result[:20])


def crashes(format_: Any, values: list[Any]) -> str | None:
    """Return how reading and writing records fails, None if it does not."""
    loss = Loss()
    only: Any = values[0] if len(values) == 1 else None
    values_to_try = cast("list[Any]", only) if isinstance(only, list) else values
    records = [Record(Place(NOWHERE, line), value) for line, value in enumerate(values_to_try, 1)]
    try:
        any(map(format_.fits, records))
        rows = [row for _, row in format_.read(records, loss)]
        for row in rows:
            if isinstance(row.get("messages"), list) and format_.name != "vivavoce":
                check_calls(row["messages"], loss)
                read_messages(row["messages"])
        if format_.write is not None:
            list(texts(rows, format_, loss))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
