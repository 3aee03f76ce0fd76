"""Places in JSON that came from a target, by a path of keys and indexes: `a.0.b` or `a[0].b`."""

from __future__ import annotations

import json
from typing import Any, TypeGuard, cast


class NotThere(LookupError):
    """Nothing stands at a path; the text says which step fails, and what is there instead."""


def value_at(payload: Any, path: str) -> object:
    """Return what stands at a path; the empty one is the whole.

    Raises:
        NotThere: nothing does.
    """
    here = payload
    for step in _steps(path):
        try:
            here = here[int(step) if isinstance(here, list) else step]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise NotThere(f"no '{step}' in {shape_of(here)}") from error
    return here


def _steps(path: str) -> list[str]:
    return [step for step in path.removeprefix("$").replace("[", ".").replace("]", "").split(".") if step]


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Return whether a value is an object of JSON."""
    return isinstance(value, dict)


def shape_of(value: Any) -> str:
    """Return in words what a value of JSON is."""
    if is_object(value):
        return f"an object with {', '.join(value)[:200] or 'no keys'}"
    return f"a list of {len(cast('list[object]', value))}" if isinstance(value, list) else json.dumps(value)[:80]
