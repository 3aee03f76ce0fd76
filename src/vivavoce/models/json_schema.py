"""JSON Schema, draft 2020-12: how a value breaks a schema, with a time limit on every pattern.

The values come from systems under test and from models. `jsonschema` searches them with the standard library's regular
expressions, which cannot be interrupted, so the keywords that search are ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from vivavoce.errors import UsageError
from vivavoce.expressions import expression
from vivavoce.records.failure import shorten

_VALUES = frozenset(("const", "enum", "default", "examples"))
"""Keywords whose values are data and no schemas."""


def mismatch(value: object, schema: Mapping[str, Any]) -> str | None:
    """Return in one line how a value breaks a JSON schema (draft 2020-12), None when it matches.

    Raises:
        UsageError: the schema itself is not valid.
        GraderFault: a pattern of the schema takes too long.
    """
    return _checker(json.dumps(schema))(value)


@lru_cache(maxsize=256)
def _checker(schema: str) -> Callable[[object], str | None]:
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema import ValidationError as Violation
    from jsonschema.exceptions import best_match  # pyright: ignore[reportUnknownVariableType]
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError as error:
        raise UsageError(f"the JSON schema is not valid at {error.json_path}: {error.message}") from error
    parsed = _without_draft(parsed)
    keywords = set(_keywords(parsed))
    if {"patternProperties", "unevaluatedProperties"} <= keywords:
        rule = "patternProperties and unevaluatedProperties cannot be checked together; write additionalProperties"
        raise UsageError(f"the JSON schema is not usable: {rule}")
    # an empty registry: a reference to a web address must not be fetched
    validator: Any = _timed()(parsed, registry=cast("Any", Registry)())
    best = cast("Callable[[Any], Violation | None]", best_match)

    def check(value: object) -> str | None:
        try:
            error = best(validator.iter_errors(value))
        except Unresolvable as unknown:
            raise UsageError(f"the JSON schema refers to '{unknown.ref}', which is not in it") from unknown
        return None if error is None else shorten(f"{error.json_path}: {error.message}", 300)

    return check


def _without_draft(schema: Any) -> Any:
    """Return a schema without `$schema`: a part that names its draft would be checked by the library's own keywords."""
    if isinstance(schema, list):
        return [_without_draft(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    parts = cast("dict[str, Any]", schema).items()
    return {
        key: value if key in _VALUES else _without_draft(value)
        for key, value in parts
        if key != "$schema" or not isinstance(value, str)
    }


def _keywords(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in cast("dict[str, Any]", schema).items():
            yield key
            if key not in _VALUES:
                yield from _keywords(value)
    elif isinstance(schema, list):
        for part in cast("list[Any]", schema):
            yield from _keywords(part)


@lru_cache(maxsize=1)
def _timed() -> Any:
    """Return the validator of draft 2020-12 with our own `pattern`, `patternProperties` and `additionalProperties`."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType]

    plain: Any = Draft202012Validator.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, expected: str, value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not expression(expected).found_in(value):
            yield ValidationError(f"{value!r} does not match {expected!r}")

    def pattern_properties(validator: Any, parts: dict[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            for expected, part in parts.items():
                for key in _matching(value, [expected]):
                    yield from validator.descend(value[key], part, path=key, schema_path=expected)

    def additional_properties(validator: Any, rest: Any, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "object"):
            matched = dict.fromkeys(_matching(value, schema.get("patternProperties", ())), True)
            declared = {"properties": {**schema.get("properties", {}), **matched}}
            yield from plain(validator, rest, value, declared)

    ours = {"pattern": pattern, "patternProperties": pattern_properties, "additionalProperties": additional_properties}
    return cast("Any", extend)(Draft202012Validator, ours)


def _matching(value: Mapping[str, Any], patterns: Any) -> list[str]:
    return [key for key in value if any(expression(pattern).found_in(key) for pattern in patterns)]
