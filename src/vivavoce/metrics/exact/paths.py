"""Paths into nested values, such as `order.items.0.id`.

A word of a path is a key of an object or the number of an item, from 0, in a list. A key may have dots in it: a longer
key counts before a shorter one, so that `meta.id` is the key `"meta.id"` where there is one, and else `id` in `meta`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from pydantic import JsonValue

Steps = tuple[str | int, ...]
"""The keys and numbers that lead to a place in a value."""


def at_path(value: JsonValue, path: str) -> tuple[JsonValue] | None:
    """Return what is at a path, alone in a tuple; None where the path leads nowhere."""
    steps = steps_to(value, path)
    return None if steps is None else (_at(value, steps),)


def steps_to(value: JsonValue, path: str) -> Steps | None:
    """Return the steps that a path takes in a value, None where it leads nowhere."""
    return next(_ways(value, path.split(".")), None)


def may_have(value: JsonValue, path: str) -> bool:
    """Say whether there could be something at a path: the object or list that it would be in is there."""
    words = path.split(".")
    if len(words) == 1:
        return isinstance(value, dict)
    parents = [at_path(value, ".".join(words[:taken])) for taken in range(len(words) - 1, 0, -1)]
    parent = next((found[0] for found in parents if found is not None), None)
    return isinstance(parent, dict) or (isinstance(parent, list) and _is_index(words[-1]))


def without(value: JsonValue, steps: Steps, other: JsonValue) -> JsonValue:
    """Return a value without what some steps lead to.

    An object that is empty then is left out as well where `other`, the value it is compared with, has none there. An
    item of a list is replaced by null, so that the items after it keep their numbers.
    """
    first, rest = steps[0], steps[1:]
    if isinstance(value, list):
        return [_inner(e, rest, _item(other, first)) if place == first else e for place, e in enumerate(value)]
    fields = dict(cast("dict[str | int, JsonValue]", value))
    counterpart = _item(other, first)
    inner = _inner(fields.pop(first), rest, counterpart)
    if rest and (inner != {} or counterpart is not None):
        fields[first] = inner
    return cast("JsonValue", fields)


def _inner(item: JsonValue, rest: Steps, counterpart: tuple[JsonValue] | None) -> JsonValue:
    return without(item, rest, None if counterpart is None else counterpart[0]) if rest else None


def _item(value: JsonValue, step: str | int) -> tuple[JsonValue] | None:
    if isinstance(value, dict):
        return (value[step],) if isinstance(step, str) and step in value else None
    if isinstance(value, list):
        return (value[step],) if isinstance(step, int) and step < len(value) else None
    return None


def _at(value: JsonValue, steps: Sequence[str | int]) -> JsonValue:
    for step in steps:
        [value] = cast("tuple[JsonValue]", _item(value, step))
    return value


def _ways(value: JsonValue, words: Sequence[str]) -> Iterator[Steps]:
    """Yield the steps of each way that some words lead along, longer keys first."""
    if not words:
        yield ()
    elif isinstance(value, list):
        place = int(words[0]) if _is_index(words[0]) else len(value)
        if place < len(value):
            yield from ((place, *rest) for rest in _ways(value[place], words[1:]))
    elif isinstance(value, dict):
        for taken in range(len(words), 0, -1):
            key = ".".join(words[:taken])
            if key in value:
                yield from ((key, *rest) for rest in _ways(value[key], words[taken:]))


def _is_index(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10
