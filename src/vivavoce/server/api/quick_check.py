"""A check of a large body that ends at its first wrong value.

The framework makes an error of each wrong value, all of them while every other request waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

_SPARE_KEYS = 10
"""Unknown keys of an object that are all named; where there are more, the object as a whole is wrong."""

_COLLECTIONS = frozenset(("list", "tuple", "set", "frozenset", "deque", "dict"))
_NOT_SCHEMAS = frozenset(("metadata", "serialization", "default", "expected", "config", "cls"))
"""Keys whose values belong to the library, but are not schemas."""


class QuickCheck:
    """The check of the bodies of one route."""

    def __init__(self, field: FieldInfo) -> None:
        kind: Any = Annotated[(field.annotation, *field.metadata, Field(discriminator=field.discriminator))]
        schema = cast("CoreSchema", _quick(TypeAdapter[Any](kind).core_schema, forbids=False))
        try:
            self._validator = SchemaValidator(schema, _use_prebuilt=False)
        except TypeError:  # older versions of the library have no such parameter
            self._validator = SchemaValidator(schema)

    def mistakes(self, body: object) -> list[tuple[tuple[int | str, ...], str]]:
        """Return the places and the problems of the first wrong values, nothing for a right body."""
        try:
            self._validator.validate_python(body)
        except ValidationError as error:
            lines = error.errors(include_url=False, include_context=False, include_input=False)
            return [(line["loc"], line["msg"]) for line in lines]
        return []


def _quick(schema: Any, *, forbids: bool) -> Any:
    """Return a schema of the library that ends at the first wrong item; `forbids` is whether unknown keys are wrong."""
    if isinstance(schema, list | tuple):
        items = cast("list[Any]", schema)
        return type(items)(_quick(item, forbids=forbids) for item in items)
    if not isinstance(schema, dict):
        return schema
    part = cast("dict[str, Any]", schema)
    kind = part.get("type")
    if not isinstance(kind, str):  # fields by name, or choices by tag
        return {name: _quick(value, forbids=forbids) for name, value in part.items()}
    extra = part.get("extra_behavior") or part.get("config", {}).get("extra_fields_behavior")
    forbids = forbids if extra is None else extra == "forbid"
    copy = {key: value if key in _NOT_SCHEMAS else _quick(value, forbids=forbids) for key, value in part.items()}
    if kind in _COLLECTIONS:
        copy["fail_fast"] = True
    if kind == "model-fields" and forbids:
        few = _check_keys(2 * len(part["fields"]) + _SPARE_KEYS)
        return core_schema.no_info_before_validator_function(few, cast("CoreSchema", copy), ref=copy.pop("ref", None))
    return copy


def _check_keys(most: int) -> Callable[[Any], Any]:
    """Return a function that refuses an object with more keys than `most`, a field having at most two names."""

    def few(value: Any) -> Any:
        if isinstance(value, dict) and (count := len(cast("dict[str, Any]", value))) > most:
            raise PydanticCustomError("too_many_keys", "{count} keys, most of them unknown", {"count": f"{count:,}"})
        return cast("Any", value)

    return few
