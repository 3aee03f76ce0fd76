"""`Written`: data that people write, in which `true` is never a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import TypeAliasType

AS_WRITTEN = {"as_written": True}
"""The context in which what a person writes is validated: there, what is empty is a mistake. A record may have it."""


class Written(BaseModel):
    """Fields of what people write; pydantic alone reads `true` as 1 where a number belongs."""

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, data: Any) -> object:
        fields = cast("dict[str, object]", data) if isinstance(data, dict) else dict[str, object]()
        annotations = _annotations(cls)
        wrong = [
            (name, *path)
            for name, value in fields.items()
            if name in annotations and (path := find_truth_as_number(annotations[name], value)) is not None
        ]
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, [_mistake(path, fields) for path in wrong])
        return cast("object", data)


Path = tuple[str | int, ...]
"""The keys and places that lead to a value in another."""


def find_truth_as_number(annotation: Any, value: object) -> Path | None:
    """Return where in a value `true` or `false` stands although only a number may, None where it nowhere does."""
    kinds = _kinds(annotation)
    if isinstance(value, bool):
        return () if kinds & {int, float} and not kinds & {bool, Any, object} else None
    containers = [part for part in kinds if get_origin(part) in (dict, list, tuple, Mapping, Sequence)]
    if not isinstance(value, Mapping | list | tuple) or len(containers) != 1 or kinds & {Any, object}:
        return None
    inner = get_args(containers[0])
    items = (
        cast("Mapping[str, object]", value)
        if isinstance(value, Mapping)
        else dict(enumerate(cast("list[object]", value)))
    )
    for place, item in items.items():
        if inner and (path := find_truth_as_number(inner[-1], item)) is not None:
            return (place, *path)
    return None


def number_expected(path: Path) -> str:
    """Return what is wrong where `find_truth_as_number` finds something, in words."""
    place = ".".join(map(str, path))
    return f"{place}: must be a number, got true or false" if place else "must be a number, got true or false"


def _mistake(path: Path, data: object) -> InitErrorDetails:
    value: Any = data
    for step in path:
        value = value[step]
    said = PydanticCustomError("number", "must be a number, got {got}", {"got": str(value).lower()})
    return InitErrorDetails(type=said, loc=path, input=value)


@cache
def _annotations(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the annotations of the fields in which there may be a number, by the names of the fields in a file."""
    return {
        field.alias or name: field.annotation
        for name, field in kind.model_fields.items()
        if _has_number(field.annotation)
    }


def _has_number(annotation: Any) -> bool:
    return any(kind in (int, float) or any(map(_has_number, get_args(kind))) for kind in _kinds(annotation))


def _kinds(annotation: Any) -> set[Any]:
    """Return the types that a value of an annotation may have."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, TypeAliasType):
        return {Any}  # such as JsonValue, which may be anything
    if origin is Annotated:
        return _kinds(parts[0])
    if origin is Literal:
        return {type(value) for value in parts}
    if origin in (Union, UnionType):
        return {kind for part in parts for kind in _kinds(part)}
    return {annotation}
