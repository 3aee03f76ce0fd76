"""JSON that every reader accepts: no NaN, no Infinity, no lone surrogates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from vivavoce.safe_text import encodable

_write = partial(to_json, inf_nan_mode="strings", serialize_unknown=True, bytes_mode="base64")


def strict_json(value: object) -> str:
    r"""Return a value as one line of JSON.

    NaN and the infinities become the strings "NaN", "Infinity" and "-Infinity", a lone surrogate the six characters
    `\ud800`, and an object unknown to JSON its `str`.
    """
    try:
        return _write(value).decode()
    except PydanticSerializationError:
        return _write(_encodable(value)).decode()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return encodable(value)
        case Mapping():
            return {_encodable(key): _encodable(one) for key, one in cast("Mapping[Any, Any]", value).items()}
        case list() | tuple():
            return [_encodable(one) for one in cast("Sequence[Any]", value)]
        case _:
            return value
