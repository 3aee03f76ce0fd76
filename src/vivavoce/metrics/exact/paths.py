"""Paths into nested values, such as `order.items.0.id`."""

from __future__ import annotations

from pydantic import JsonValue


def at_path(value: JsonValue, path: str) -> tuple[JsonValue] | None:
    """Return what is at a path, alone in a tuple; a number is a place in a list, and a key may have dots in it."""
    steps = path.split(".")
    while steps:
        inner, taken = _step(value, steps)
        if not taken:
            return None
        value, steps = inner, steps[taken:]
    return (value,)


def _step(value: JsonValue, steps: list[str]) -> tuple[JsonValue, int]:
    """Return the value one step further and how many words of the path that took, 0 where there is none."""
    if isinstance(value, list):
        place = int(steps[0]) if steps[0].isdecimal() else len(value)
        return (value[place], 1) if place < len(value) else (None, 0)
    for taken in range(len(steps), 0, -1):
        key = ".".join(steps[:taken])
        if isinstance(value, dict) and key in value:
            return value[key], taken
    return None, 0
