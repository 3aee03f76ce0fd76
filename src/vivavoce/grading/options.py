"""Options of extractors and graders: keyword-only parameters that a suite can set, checked before anything runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_type_hints

from pydantic import AfterValidator, TypeAdapter, ValidationError

from vivavoce.errors import UsageError, did_you_mean
from vivavoce.expressions import expression
from vivavoce.foreign_code import name_of
from vivavoce.models.json_schema import check_schema

Function = Callable[..., Any]


def _expression(text: str) -> str:
    return expression(text).text


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    check_schema(schema)
    return schema


Pattern = Annotated[str, AfterValidator(_expression)]
"""A regular expression, as text."""

JsonSchema = Annotated[dict[str, Any], AfterValidator(_schema)]
"""A JSON schema."""


def option_names(function: Function) -> list[str]:
    """Return the names of a function's options."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]


def read_options(function: Function, values: Mapping[str, Any]) -> dict[str, Any]:
    """Check options against a function and return them with the types of its parameters.

    Raises:
        UsageError: an option is unknown, missing or of the wrong type.
    """
    names, parameters = option_names(function), inspect.signature(function).parameters
    for name in values:
        if name not in names:
            known = did_you_mean(name, names) or "; it takes none"
            if name == "threshold":
                known = "; to decide which scores pass, write threshold: beside function:"
            raise UsageError(f"'{name_of(function)}' has no option '{name}'{known}")
    for name in names:
        if name not in values and parameters[name].default is inspect.Parameter.empty:
            raise UsageError(f"'{name_of(function)}' needs the option '{name}'")
    hints = get_type_hints(function, include_extras=True)
    return {name: _validated(function, name, hints[name], value) for name, value in values.items()}


def _validated(function: Function, name: str, hint: Any, value: Any) -> Any:
    place = f"option '{name}' of '{name_of(function)}'"
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{place}: {first['msg']}, got {first['input']!r}") from error
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def check_parameters(function: Function, positional: Sequence[str], named: Sequence[str] = ()) -> list[str]:
    """Return which of `named` a user's function takes; it always gets the `positional` ones.

    Raises:
        UsageError: it cannot be called like this.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:
        raise UsageError(f"{name_of(function)}: its parameters cannot be read; wrap it in a function") from error
    known = [p.name for p in parameters if p.name in named]
    rule = f"it is called with {', '.join((*positional, *(f'{name}=' for name in named)))}"
    try:
        inspect.signature(function).bind(*positional, **dict.fromkeys(known))
    except TypeError as error:
        raise UsageError(f"{name_of(function)}: {error}; {rule}") from error
    return known
