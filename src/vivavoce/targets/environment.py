"""`${NAME}` in a target: read from the environment when the target is made, so that no key stands in a suite."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.errors import UsageError

NAME = re.compile(r"\$\{(\w+)\}")


def environment_of(value: object, place: str) -> dict[str, str]:
    """Return the environment variables that the texts of a structure name, by name.

    Raises:
        UsageError: one is not set, or blank; values are never shown.
    """
    names = dict.fromkeys(name for text in _texts(value) for name in NAME.findall(text))
    missing = [name for name in names if not os.environ.get(name, "").strip()]
    if missing:
        raise UsageError(*(f"{place}: the environment variable {name} is not set" for name in sorted(missing)))
    return {name: os.environ[name].strip() for name in names}


def from_environment(value: Any, place: str) -> Any:
    """Return a structure with the values of the environment in its texts.

    Raises:
        UsageError: a variable is not set.
    """
    variables = environment_of(value, place)

    def of(match: re.Match[str]) -> str:
        return variables[match[1]]

    return _mapped(value, of)


def as_variables(value: Any) -> Any:
    """Return a template in which `${NAME}` is the variable `environment.NAME`, so that its value is only data."""
    return _mapped(value, r"{{ environment.\1 }}")


def _mapped(value: Any, by: Any) -> Any:
    if isinstance(value, str):
        return NAME.sub(by, value)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, by) for key, inner in cast("Mapping[Any, Any]", value).items()}
    return [_mapped(inner, by) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[object, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)
