"""`Shape`: what a judge's answer, or a part of one, has to look like."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, create_model


def _without_description(schema: dict[str, Any]) -> None:
    schema.pop("description", None)


class Shape(BaseModel):
    """An answer, or a part of one, in which nothing else may stand.

    Its docstring is for those who read the code; what a judge has to know stands in the prompt.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra=_without_description)


S = TypeVar("S", bound=Shape)


def limited(shape: type[S], parts: str, part: type[Shape], field: str, values: tuple[str | int, ...]) -> type[S]:
    """Return the class of an answer that is a list of `parts`, a field of each of which is one of these values."""
    choice: dict[str, Any] = {field: (cast("Any", Literal)[values], ...)}
    listed: dict[str, Any] = {parts: (list[create_model(part.__name__, __base__=part, **choice)], ...)}
    return create_model(shape.__name__, __base__=shape, **listed)
