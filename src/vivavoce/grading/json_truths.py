"""Truths that are no text: the answer is read as strict JSON, and values are compared, not the way they are written."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from vivavoce.comparing.json_values import BrokenJson, decode_exact_from, read_strict_json, same_json
from vivavoce.metrics.exact.arguments import show

_MAX_ATTEMPTS = 1000
"""Places in a text where an object is looked for: a text of braces alone must not take forever."""


def differs_as_json(text: str, wanted: JsonValue) -> str:
    """Return how an answer differs from a JSON value, in words; empty where it is that value and nothing else."""
    try:
        value = read_strict_json(text.strip())
    except BrokenJson as error:
        fenced = "; it stands in a code fence" if text.strip().startswith("```") else ""
        return f"is not JSON, and is compared with {show(wanted)}: {error}{fenced}"
    return "" if same_json(value, wanted) else f"is the JSON value {show(value)}, not {show(wanted)}"


def lacks_json(text: str, wanted: JsonValue) -> str:
    """Return that a text has no object or list in it that is the wanted one, in words; empty where it has one."""
    if any(same_json(value, wanted) for value in _values_in(text, "{" if isinstance(wanted, dict) else "[")):
        return ""
    return f"does not contain the JSON value {show(wanted)}"


def _values_in(text: str, bracket: str) -> Iterator[JsonValue]:
    """Yield the values that begin with a bracket, also those inside of others, as far as they are strict JSON."""
    place = -1
    for _ in range(_MAX_ATTEMPTS):
        place = text.find(bracket, place + 1)
        if place < 0:
            return
        try:
            yield decode_exact_from(text, place)[0]
        except (ValueError, RecursionError):
            continue
