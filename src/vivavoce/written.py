"""`Written`: data that people write, in which `true` is never a number."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError


class Written(BaseModel):
    """Fields of what people write; pydantic alone reads `true` as 1 where a number belongs."""

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, data: Any) -> object:
        fields = cast("dict[str, object]", data) if isinstance(data, dict) else dict[str, object]()
        wrong = {name: value for name, value in fields.items() if isinstance(value, bool) and name in _numbers(cls)}
        if wrong:
            raise ValidationError.from_exception_data(cls.__name__, [_mistake(*one) for one in wrong.items()])
        return cast("object", data)


def _mistake(name: str, value: bool) -> InitErrorDetails:
    said = PydanticCustomError("number", "must be a number, got {got}", {"got": str(value).lower()})
    return InitErrorDetails(type=said, loc=(name,), input=value)


@cache
def _numbers(kind: type[BaseModel]) -> frozenset[str]:
    """Return the fields that are numbers and never true or false."""
    kinds = {name: _kinds(field.annotation) for name, field in kind.model_fields.items()}
    return frozenset(
        kind.model_fields[name].alias or name
        for name, found in kinds.items()
        if found & {int, float} and not found & {bool, Any}
    )


def _kinds(annotation: Any) -> set[Any]:
    """Return the types that a value of an annotation may have."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kinds(parts[0])
    if origin is Literal:
        return {type(value) for value in parts}
    if origin in (Union, UnionType):
        return {kind for part in parts for kind in _kinds(part)}
    return {annotation}
