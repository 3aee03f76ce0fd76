"""Options that all metrics share: which there are, and of what type, checked when a metric is made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from vivavoce.errors import UsageError, did_you_mean

T = TypeVar("T")


def read_options(kind: type[T], options: Mapping[str, Any]) -> T:
    """Return options as their type has them; `kind` is a TypedDict.

    Raises:
        UsageError: an option is unknown, or of the wrong type.
    """
    check_names(kind, options)
    try:
        return _reader(kind).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"option '{place}': {first['msg']}, got {first['input']!r}") from error


def check_names(kind: type, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that a TypedDict does not have."""
    known = kind.__annotations__
    for name in options:
        if name not in known:
            raise UsageError(f"no option '{name}'{did_you_mean(name, known)}")


@cache
def _reader(kind: type[T]) -> TypeAdapter[T]:
    return cast("TypeAdapter[T]", TypeAdapter(kind))
