"""What batch services send, read with care: it may be anything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from vivavoce.errors import ModelFault


def read_object(payload: object) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        ModelFault: it is something else.
    """
    if isinstance(payload, dict):
        return cast("dict[str, Any]", payload)
    raise ModelFault(f"the batch service answered {str(payload)[:80]!r}, which is no JSON object", kind="format")


def listed_objects(payload: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of a list, which is empty where there is none.

    Raises:
        ModelFault: it holds something else.
    """
    listed = payload.get(name)
    return [read_object(one) for one in cast("list[object]", listed)] if isinstance(listed, list) else []


def read_counts(payload: Mapping[str, Any]) -> dict[str, int]:
    """Return how many requests of a batch are in each state."""
    told = payload.get("request_counts")
    counts = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    return {name: number for name, number in counts.items() if isinstance(number, int)}


def rows_of(text: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of results.

    Raises:
        ModelFault: a line is no JSON object.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelFault(f"line {number} of the results is not JSON: {error}", kind="format") from error
        yield read_object(row)


def checked_id(given: object, what: str) -> str:
    """Return an id that a service gave, which becomes a part of addresses.

    Raises:
        ModelFault: it is none that could.
    """
    if isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,200}", given):
        return given
    raise ModelFault(f"{what}: the service gave no usable id: {str(given)[:80]!r}", kind="format")
