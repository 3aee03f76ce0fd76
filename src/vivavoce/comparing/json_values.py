"""JSON values: how JSON text is read, and when two values are the same.

Python's own reader accepts NaN, Infinity, and a key that occurs twice. Each of them would change a value, or lose one,
without a message, so the readers here refuse them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, cast

from pydantic import JsonValue

BLANK = " \t\r\n"
MAX_DEPTH = 200
"""Levels of nesting: a value that is read must be written again, and pydantic writes down to 255 levels."""


_Object = dict[str, Any]
_List = list[Any]


class BrokenJson(ValueError):
    """The text is not strict JSON; `offset` is the character where it breaks, None when it is not known."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class RepeatedKey(BrokenJson):
    """An object has the same key twice, so that nobody can tell which value is meant."""

    def __init__(self, key: str, offset: int | None = None) -> None:
        super().__init__(f"the key '{key}' occurs twice in one object", offset)
        self.key = key


def read_strict_json(text: str) -> JsonValue:
    """Return the one JSON value in a text.

    Raises:
        BrokenJson: the text is not JSON, holds NaN, Infinity, a number such as 1e999 or one with more digits than can
            be compared, or an object with the same key twice, is nested too deeply, or goes on after the value. It is
            a ValueError.
    """
    return _read(text, _EXACT_DECODER)


def same_json(a: Any, b: Any) -> bool:
    """Return whether two JSON values are the same at every depth.

    The order of keys does not matter, the order of lists does. Numbers are compared as the decimals that they are
    written as: 100 equals 100.0 and 1e2. A bool is not a number, a number is not a text, and NaN equals nothing.
    """
    pending: list[tuple[Any, Any]] = [(a, b)]  # no recursion: a model may nest deeper than Python can call
    while pending:
        left, right = pending.pop()
        if isinstance(left, dict):
            if not isinstance(right, dict) or cast("_Object", left).keys() != cast("_Object", right).keys():
                return False
            pending += [(value, right[key]) for key, value in cast("_Object", left).items()]
        elif isinstance(left, list):
            if not isinstance(right, list) or len(cast("_List", left)) != len(cast("_List", right)):
                return False
            pending += zip(cast("_List", left), cast("_List", right), strict=True)
        elif is_number(left):
            if not is_number(right) or as_decimal(left) != as_decimal(right):
                return False
        elif type(left) is not type(right) or left != right:
            return False
    return True


def json_key(value: Any) -> str:
    """Return a text that two JSON values share exactly if `same_json` calls them the same, so that sets can find them.

    Raises:
        RecursionError: the value is nested deeper than `MAX_DEPTH` allows.
    """
    if isinstance(value, dict):
        pairs = cast("_Object", value).items()
        return "{" + ",".join(sorted(f"{json.dumps(key)}:{json_key(item)}" for key, item in pairs)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_key, cast("_List", value))) + "]"
    if is_number(value):
        sign, digits, exponent = as_decimal(value).as_tuple()
        text = "".join(map(str, digits))
        significant = text.strip("0")
        if not significant or not isinstance(exponent, int):
            return "0" if isinstance(exponent, int) else f"{exponent}{sign}"
        return f"{'-' * sign}{text.lstrip('0').rstrip('0')}e{exponent + len(text) - len(text.rstrip('0'))}"
    return json.dumps(value)


def is_number(value: object) -> bool:
    """Return whether a value is a JSON number, which a bool is not."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def as_decimal(number: Any) -> Decimal:
    """Return a number as the decimal that it is written as: 0.1 is one tenth, not the nearest binary fraction."""
    return Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number)


def parse(text: str) -> Any:
    """Return what `read_strict_json` returns, for readers that check the type of each part themselves.

    A fraction with more digits than a float holds is rounded: a record may have times and probabilities with many.

    Raises:
        BrokenJson: the text is not one strict JSON value.
    """
    return _read(text, _DECODER)


def _read(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        value = _whole(text, decoder)
    except (ValueError, RecursionError) as error:
        raise wrap_decode_error(error) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise _too_deep()
    return value


def decode_from(text: str, at: int) -> tuple[Any, int]:
    """Return the value that begins at a character of a text, and where it ends.

    Raises:
        BrokenJson: it is not strict.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _DECODER.raw_decode(text, at)


def decode_exact_from(text: str, at: int) -> tuple[JsonValue, int]:
    """Return the value that begins at a character, as `decode_from` does, where its numbers are to be compared.

    Raises:
        BrokenJson: it is not strict, or a number has more digits than can be compared.
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return _EXACT_DECODER.raw_decode(text, at)


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


def wrap_decode_error(error: ValueError | RecursionError, offset: int | None = None) -> BrokenJson:
    """Return the error of a decoder as one kind of error."""
    if isinstance(error, RepeatedKey):
        return RepeatedKey(error.key, error.offset if error.offset is not None else offset)
    if isinstance(error, BrokenJson):
        return BrokenJson(str(error), error.offset if error.offset is not None else offset)
    if isinstance(error, json.JSONDecodeError):
        return BrokenJson(f"not valid JSON: {error.msg}", error.pos)
    if isinstance(error, RecursionError):
        return _too_deep(offset)
    return BrokenJson(f"not valid JSON: {error}", offset)


def _whole(text: str, decoder: json.JSONDecoder) -> Any:
    """Return the value of a text, as the decoder's own `decode` does, which takes longer to look for blanks."""
    at = len(text) - len(text.lstrip(BLANK)) if text[:1] in BLANK else 0
    value, end = decoder.raw_decode(text, at)
    if rest := text[end:].lstrip(BLANK):
        raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise RepeatedKey(next(key for key, count in counts.items() if count > 1))
    return fields


def _constant(name: str) -> NoReturn:
    raise BrokenJson(f"{name} is not a JSON number; write null where there is no value")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise BrokenJson(f"the number {digits[:40]} is too large")
    return number


def _exact_float(digits: str) -> float:
    """Return a number that a float holds as it is written."""
    number = _float(digits)
    try:
        is_exact = as_decimal(number) == Decimal(digits)
    except InvalidOperation:  # an exponent that even a decimal cannot have
        is_exact = False
    if not is_exact:
        raise BrokenJson(f"the number {digits[:40]} has too many digits to compare")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_EXACT_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_exact_float)
_LENIENT = json.JSONDecoder(object_pairs_hook=_object, parse_constant=lambda _: None)


def _too_deep(offset: int | None = None) -> BrokenJson:
    return BrokenJson(f"nested too deeply: more than {MAX_DEPTH} levels", offset)


def _is_deep(value: Any) -> bool:
    level = _inside([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = _inside(
            child for container in level for child in (container.values() if isinstance(container, dict) else container)
        )
    return bool(level)


def _inside(values: Iterable[Any]) -> list[dict[str, Any] | list[Any]]:
    return [value for value in values if type(value) is dict or type(value) is list]
