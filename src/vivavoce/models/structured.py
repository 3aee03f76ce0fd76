"""Structured replies: JSON objects that match a JSON schema, checked and never guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from vivavoce.comparing.json_values import RepeatedKey, parse
from vivavoce.models.json_schema import mismatch
from vivavoce.models.model import Schema
from vivavoce.records.score import shorten

_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""What half a surrogate pair looks like in JSON; a judge that quotes a damaged conversation may write it."""
_SILENT = frozenset(("title", "default"))
"""What pydantic writes into a schema and strict modes do not take, or a model need not read."""
_STRICT_KEYWORDS = frozenset(
    """
    $schema $id $ref $defs definitions title description type enum const properties required additionalProperties items
    anyOf pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems
    """.split()  # noqa: SIM905  # a list would take a line for each
)
"""What OpenAI's strict mode takes; source: "Supported schemas" in its guide to structured outputs."""
_NAMED_PARTS = ("properties", "$defs", "definitions")
"""Keywords whose keys are names that somebody chose, and whose values are schemas."""


_MAX_PROBLEMS = 8
"""Mismatches of one answer that are named, each in up to 300 characters."""


@lru_cache(maxsize=256)  # some classes are made for one conversation, and must not be kept forever
def class_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a class in the form that strict modes take: objects closed, every property required."""
    return cast("dict[str, Any]", _strict(shape.model_json_schema()))


@lru_cache(maxsize=256)
def is_closed(shape: type[BaseModel]) -> bool:
    """Return whether a class and all classes in it forbid other keys, so that no key is another spelling of a field."""
    return _is_closed(shape.model_json_schema())


def _is_closed(part: object) -> bool:
    if isinstance(part, list):
        return all(map(_is_closed, cast("list[object]", part)))
    if not isinstance(part, dict):
        return True
    given = cast("dict[str, object]", part)
    if "properties" in given and given.get("additionalProperties") is not False:
        return False
    return all(map(_is_closed, given.values()))


def wire_schema(schema: Schema) -> Mapping[str, Any]:
    """Return the JSON schema of what a request asks for."""
    return class_schema(schema) if isinstance(schema, type) else schema


def reply_name(schema: Mapping[str, Any]) -> str:
    """Return the name of what a schema asks for, in the characters that providers take."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title", "reply")))[:64]


def _strict(part: object) -> object:
    if isinstance(part, list):
        return [_strict(item) for item in cast("list[object]", part)]
    if not isinstance(part, dict):
        return part
    given = cast("dict[str, Any]", part)
    properties: dict[str, Any] | None = given.get("properties")
    kept = {key: _strict(value) for key, value in given.items() if key not in _SILENT and key != "properties"}
    if properties is not None:
        kept["properties"] = {name: _strict(value) for name, value in properties.items()}
        kept |= {"required": list(properties), "additionalProperties": False}
    return kept


@dataclass(frozen=True, slots=True)
class StructuredAnswer:
    """An answer that matches its schema; `read` is what had to be read otherwise than it was written, if anything.

    `checked` is the answer as an instance of the class that was asked for, None where the schema is not a class.
    """

    parsed: dict[str, Any]
    read: tuple[str, ...] = ()
    checked: BaseModel | None = field(default=None, compare=False)

    def noted(self, applied: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of how a request was put, with how its answer was read where that was not strictly."""
        if not self.read:
            return dict(applied)
        before = [applied["read"]] if "read" in applied else []
        return {**applied, "read": ", ".join([*before, *self.read])}


def read_structured(text: str, schema: Schema) -> StructuredAnswer:
    """Read the JSON object in a reply; half a surrogate pair, which is not text, becomes a replacement character.

    Raises:
        RepeatedKey: an object in it has the same key twice.
        ValueError: it is not JSON, not an object, or does not match; the text says where and which rule.
    """
    try:
        value = parse(text)
        if _ESCAPED_HALF.search(text):
            text = whole_text(value)
            value = parse(text)
    except RepeatedKey:
        raise
    except ValueError as error:
        raise ValueError(f"not JSON: {error.__cause__ or error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed, got a {type(value).__name__}")
    parsed: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    return StructuredAnswer(parsed, (), _check(parsed, text, schema))


def check_structured(parsed: Mapping[str, Any], schema: Schema) -> BaseModel | None:
    """Check that a JSON object matches a schema, and return it as an instance where the schema is a class.

    Raises:
        ValueError: it does not; the text says where and which rule.
    """
    return _check(parsed, to_json(parsed, inf_nan_mode="constants"), schema)


def _check(parsed: Mapping[str, Any], text: str | bytes, schema: Schema) -> BaseModel | None:
    if not isinstance(schema, type):
        if problem := mismatch(parsed, schema):
            raise ValueError(problem)
        return None
    try:
        return schema.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(_mismatch(error)) from None


def whole_text(value: object) -> str:
    """Return a value as JSON; each half of a surrogate pair becomes a replacement character."""
    spelled = json.dumps(value, ensure_ascii=False)
    return spelled.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _mismatch(error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    problems = [_problem(one["loc"], one["msg"], one["input"]) for one in errors[:_MAX_PROBLEMS]]
    left = [f"and {len(errors) - _MAX_PROBLEMS} more"] if len(errors) > _MAX_PROBLEMS else []
    return "; ".join([*problems, *left])


def _problem(place: tuple[int | str, ...], rule: str, value: object) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return shorten(f"${path}: {rule}, got {value!r}", 300)


def allows_strict(schema: object) -> bool:
    """Say whether OpenAI's strict mode takes a schema: its keywords only, objects closed, every property required."""
    if not isinstance(schema, Mapping):
        return True
    parts = cast("Mapping[str, Any]", schema)
    if not _STRICT_KEYWORDS.issuperset(parts):
        return False
    if parts.get("type") == "object" or "properties" in parts:
        properties: Mapping[str, object] = parts.get("properties") or {}
        if parts.get("additionalProperties") is not False or set(parts.get("required", ())) != set(properties):
            return False
    inner: list[object] = [*parts.get("anyOf", ()), parts.get("items")]
    for keyword in _NAMED_PARTS:
        inner += parts.get(keyword, {}).values()
    return all(allows_strict(part) for part in inner)
