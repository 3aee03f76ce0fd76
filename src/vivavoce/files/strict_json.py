"""JSON read strictly: no NaN, no Infinity, no key twice in an object.

Python's own reader lets these pass; each would change a value, or lose one, without a word.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, NoReturn


class BrokenJson(ValueError):
    """The text is not JSON; `offset` is the character where it breaks, None when it is not known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in fields if keys.count(key) > 1)
        raise BrokenJson(f"the key '{twice}' occurs twice in one object")
    return fields


def _constant(name: str) -> NoReturn:
    raise BrokenJson(f"{name} is not a JSON number; write null where there is no value")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise BrokenJson(f"the number {digits[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None)
BLANK = " \t\r\n"
_DEEPEST = 200
"""How deep values may be nested: what is read must be written again, and pydantic writes down to 255."""


def parse(text: str) -> Any:
    """Return the value that JSON text holds.

    Raises:
        BrokenJson: the text is not one JSON value.
    """
    try:
        value = _whole(text)
    except (ValueError, RecursionError) as error:
        raise broken(error) from error
    if text.count("[") + text.count("{") > _DEEPEST and _is_deep(value):
        raise _too_deep()
    return value


def _whole(text: str) -> Any:
    """Return the value of a text, as the decoder's own `decode` does, which takes longer to look for blanks."""
    at = len(text) - len(text.lstrip(BLANK)) if text[:1] in BLANK else 0
    value, end = _DECODER.raw_decode(text, at)
    if rest := text[end:].lstrip(BLANK):
        raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    return value


def decode_from(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at a character of a text, and where it ends.

    Raises:
        BrokenJson: it is not strict.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.raw_decode(text, at)


def decode_lenient_from(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at a character, as `decode_from` does; NaN and the infinite become None.

    Python's own writer writes them, and some formats are defined by what it writes.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _LENIENT.raw_decode(text, at)


def check_depth(value: Any) -> None:
    """Check that a value is not nested so deeply that it could not be written again.

    Raises:
        BrokenJson: it is.
    """
    if _is_deep(value):
        raise _too_deep()


def broken(error: ValueError | RecursionError, offset: int | None = None) -> BrokenJson:
    """Return what the decoder complains about as one kind of error."""
    if isinstance(error, BrokenJson):
        return BrokenJson(str(error), error.offset if error.offset is not None else offset)
    if isinstance(error, json.JSONDecodeError):
        return BrokenJson(f"not valid JSON: {error.msg}", error.pos)
    if isinstance(error, RecursionError):
        return _too_deep(offset)
    return BrokenJson(f"not valid JSON: {error}", offset)


def _too_deep(offset: int | None = None) -> BrokenJson:
    return BrokenJson(f"nested too deeply: more than {_DEEPEST} levels", offset)


def _is_deep(value: Any) -> bool:
    level = _inside([value])
    for _ in range(_DEEPEST):
        if not level:
            return False
        level = _inside(
            child for container in level for child in (container.values() if isinstance(container, dict) else container)
        )
    return bool(level)


def _inside(values: Iterable[Any]) -> list[dict[str, Any] | list[Any]]:
    return [value for value in values if type(value) is dict or type(value) is list]
