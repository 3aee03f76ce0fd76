"""Reads the JSON object that a model answered with, strictly, or else as small models write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.comparing.json_values import RepeatedKey, parse
from vivavoce.models.fitting import check_keys, fitted
from vivavoce.models.loose_json import find_object
from vivavoce.models.model import Schema
from vivavoce.models.structured import check_structured, read_structured, reply_name, whole_text, wire_schema


@dataclass(frozen=True, slots=True)
class StructuredAnswer:
    """An answer that matches its schema; `read` is what had to be read otherwise than it was written, if anything."""

    parsed: dict[str, Any]
    read: tuple[str, ...] = ()

    def noted(self, applied: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of how a request was put, with how its answer was read where that was not strictly."""
        if not self.read:
            return dict(applied)
        before = [applied["read"]] if "read" in applied else []
        return {**applied, "read": ", ".join([*before, *self.read])}


def read_answer(text: str, schema: Schema) -> StructuredAnswer:
    """Read the one JSON object in an answer.

    Strictly at first. If that fails, what stands around the object is cut off, and the spelling of the object, its
    keys, and values is that of the schema where exactly one reading is possible.

    Raises:
        RepeatedKey: an object in it has the same key twice, also where only the spelling of the key differs.
        ValueError: it is not JSON, not one object, or does not match; the text says where and which rule.
    """
    try:
        parsed = read_structured(text, schema)
    except RepeatedKey:
        raise
    except ValueError as error:
        strict = error
    else:
        check_keys(parsed, wire_schema(schema))
        return StructuredAnswer(parsed)
    try:
        value, written = _object_in(text)
    except RepeatedKey:
        raise
    except (ValueError, RecursionError):
        raise strict from None
    return _fit(value, written, schema, strict)


def lacks_keys(text: str, schema: Schema) -> bool:
    """Say whether an answer has no JSON object with all keys of its schema, as where nobody heeded that."""
    try:
        found, _ = _object_in(text)
    except RepeatedKey:
        return False
    except (ValueError, RecursionError):
        return True
    return not found.keys() >= set(wire_schema(schema).get("required", ()))


def check_answer(parsed: Mapping[str, Any], schema: Schema) -> StructuredAnswer:
    """Return a JSON object in the spelling of its schema.

    Raises:
        ValueError: it does not match; the text says where and which rule.
    """
    try:
        check_structured(parsed, schema)
    except ValueError as error:
        return _fit(parsed, [], schema, error)
    check_keys(parsed, wire_schema(schema))
    return StructuredAnswer(dict(parsed))


def _fit(parsed: Mapping[str, Any], written: list[str], schema: Schema, strict: ValueError) -> StructuredAnswer:
    shape = wire_schema(schema)
    check_keys(parsed, shape)
    value, changed = fitted(parsed, shape, reply_name(shape))
    if not written and not changed:
        raise strict
    check_structured(value, schema)
    return StructuredAnswer(value, (*written, *changed))


def _object_in(text: str) -> tuple[dict[str, Any], list[str]]:
    try:
        value: object = parse(text)
    except RepeatedKey:
        raise
    except ValueError:
        value = None
    if isinstance(value, dict):
        return _without_halves(cast("object", value)), []
    found, written = find_object(value if isinstance(value, str) else text)
    quoted = ["quoted"] if isinstance(value, str) else []
    return _without_halves(found), [*quoted, *written]


def _without_halves(value: object) -> dict[str, Any]:
    return parse(whole_text(value))
