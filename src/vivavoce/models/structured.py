"""Structured replies: JSON objects that match a JSON schema, checked and never guessed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.records.failure import shorten


def read_structured(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read the JSON object in a reply.

    Raises:
        ValueError: it is not JSON, not an object, or does not match; the text says where and which rule.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"a JSON object is needed, got a {type(value).__name__}")
    parsed = cast("dict[str, Any]", value)
    if problem := mismatch(parsed, schema):
        raise ValueError(problem)
    return parsed


def mismatch(value: object, schema: Mapping[str, Any]) -> str | None:
    """Say in one line how a value breaks a JSON schema (draft 2020-12), None when it matches.

    Raises:
        UsageError: the schema itself is not valid.
    """
    return _checker(json.dumps(schema))(value)


def allows_strict(schema: object) -> bool:
    """Say whether a schema is one that OpenAI's strict mode takes: every object closed and every property required."""
    if isinstance(schema, list):
        return all(allows_strict(part) for part in cast("list[object]", schema))
    if not isinstance(schema, Mapping):
        return True
    parts = cast("Mapping[str, Any]", schema)
    if parts.get("type") == "object" or "properties" in parts:
        properties: Mapping[str, object] = parts.get("properties") or {}
        if parts.get("additionalProperties") is not False or set(parts.get("required", ())) != set(properties):
            return False
    return all(allows_strict(part) for part in parts.values())


@lru_cache(maxsize=256)
def _checker(schema: str) -> Callable[[object], str | None]:
    from jsonschema import Draft202012Validator, SchemaError, ValidationError
    from jsonschema.exceptions import best_match  # pyright: ignore[reportUnknownVariableType]
    from referencing import Registry

    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError as error:
        raise UsageError(f"the JSON schema is not valid at {error.json_path}: {error.message}") from error
    # an empty registry: a reference to a web address must not be fetched
    validator: Any = Draft202012Validator(parsed, registry=Registry())
    best = cast("Callable[[Any], ValidationError | None]", best_match)

    def check(value: object) -> str | None:
        error = best(validator.iter_errors(value))
        return None if error is None else shorten(f"{error.json_path}: {error.message}", 300)

    return check


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")
