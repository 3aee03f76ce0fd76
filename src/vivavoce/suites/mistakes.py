"""The mistakes that validation finds in a suite, each with its place and in the terms of the suite."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vivavoce.errors import Problem, did_you_mean
from vivavoce.plugins import is_file_reference
from vivavoce.suites.document import Described, KeyPath
from vivavoce.suites.spec import SuiteSpec
from vivavoce.suites.tester_spec import WITH_OPTIONS
from vivavoce.suites.trials_spec import NUMBER, UNTIL
from vivavoce.targets.environment import VARIABLE
from vivavoce.wire.http import holds_user

_SIGNS = {">": "gt", ">=": "gte", "≥": "gte", "<": "lt", "<=": "lte", "≤": "lte", "==": "eq", "=": "eq"}
_NEEDS = {
    "string_type": "a text",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
}
_MAPPINGS = ("model_type", "model_attributes_type", "dict_type")
_SECRET = {"api_key", "headers"}
_EMPTY = ("too_short", "string_too_short")


def mistakes_in(document: Described, error: ValidationError, schema: type[BaseModel] = SuiteSpec) -> list[Problem]:
    """Return the mistakes that validation found, each with its place in data that must match `schema`."""
    return [_problem(document, details, schema) for details in error.errors(include_url=False)]


def _problem(document: Described, details: ErrorDetails, schema: type[BaseModel]) -> Problem:
    at = path_in(document.data, details["loc"])
    kind = details["type"]
    if kind == "extra_forbidden":
        known = _known_keys(details["loc"], schema)
        return document.problem(at, f"unknown key{did_you_mean(str(at[-1]), known)}")
    if kind == "missing":
        return document.problem(at[:-1], f"the key '{at[-1]}' is missing")
    if kind == "union_tag_not_found":
        return document.problem(at, "the key 'kind' is missing")
    if kind == "union_tag_invalid":
        context = details["ctx"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        tags = [tag.strip("' ") for tag in str(context["expected_tags"]).split(",")]
        return document.problem((*at, "kind"), f"no kind '{context['tag']}'{did_you_mean(str(context['tag']), tags)}")
    return document.problem(at, _rule(at, details, _variable_at(document.data, at)))


def _rule(at: KeyPath, details: ErrorDetails, written: str | None) -> str:
    """Say what is needed, what was found instead, and how to write it if that can be guessed.

    `written` is what the suite has in place of a value of the environment, which is never shown.
    """
    kind, value = details["type"], details["input"]
    got = "" if _SECRET & {*at} else _got(value if written is None else written)
    if kind == "value_error":
        return details["msg"].removeprefix("Value error, ")
    if kind in _MAPPINGS:
        return f"needs a mapping{_such_as(at, value)}"
    if kind in _EMPTY:
        return "is empty; it needs at least one" if kind == "too_short" else "is empty"
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", str(details.get("ctx", {}).get("expected")))
        close = _SIGNS.get(str(value)) or next(iter(difflib.get_close_matches(str(value), known, n=1)), None)
        return f"needs one of {', '.join(known)}{got}" + (f"; did you mean {close}?" if close else "")
    if kind in _NEEDS:
        return f"needs {_NEEDS[kind]}{got}{_spelling(kind, value)}"
    return f"{details['msg'].removeprefix('Input ')}{got}"


def _variable_at(data: Any, at: KeyPath) -> str | None:
    """Return the text with variables that stands at a place, None if there is another value."""
    for step in at:
        if isinstance(data, dict):
            data = cast("dict[str | int, Any]", data).get(step)
        else:
            items = cast("list[Any]", data) if isinstance(data, list) else []
            data = items[step] if isinstance(step, int) and step < len(items) else None
    return data if isinstance(data, str) and VARIABLE.search(data) else None


def _such_as(at: KeyPath, value: object) -> str:
    match at:
        case ("target",) | ("targets", _):
            named = value if isinstance(value, str) and is_file_reference(value) else "bot.py:reply"
            return f", such as {{kind: function, function: {named}}}"
        case ("graders",):
            return " of names to graders, such as {right: {kind: function, function: contains}}"
        case ("graders", _):
            return ", such as {kind: function, function: contains}"
        case ("gate", *_):
            return ", such as {kind: simple, metric_key: NAME, op: gte, value: 0.9}"
        case _:
            return ""


def _spelling(kind: str, value: object) -> str:
    """Return a hint for a value that YAML read as another type."""
    if kind == "string_type" and isinstance(value, bool | int | float):
        return "; put it in quotes"
    if kind.startswith("float") and isinstance(value, str) and (number := re.fullmatch(r"\s*([\d.]+)\s*%\s*", value)):
        return (
            f"; write {number[1]} where a percentage is meant (aggregation: accuracy), else {float(number[1]) / 100:g}"
        )
    return "; write [x] for a list of one" if kind == "list_type" and isinstance(value, str | dict) else ""


def _got(value: object) -> str:
    """Return the value as it was read, shortened; empty for a structure or for a value that may contain a password."""
    if value is None:
        return ", got nothing"
    if isinstance(value, dict | list) or (isinstance(value, str) and holds_user(value)):
        return ""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return f", got {text if len(text) <= 60 else f'{text[:57]}...'}"


def path_in(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Return the path in the file: the tags of unions are steps of the schema, not of the file."""
    at: list[str | int] = []
    tagged = False
    for part in loc:
        if part in (WITH_OPTIONS, NUMBER, UNTIL):
            continue
        here = cast("dict[str | int, Any]", data) if isinstance(data, dict) else {}
        if not tagged and here.get("kind") == part:
            tagged = True
            continue
        tagged = False
        at.append(part)
        items = cast("list[Any]", data) if isinstance(data, list) else []
        data = items[part] if isinstance(part, int) and part < len(items) else here.get(part)
    return tuple(at)


def _known_keys(loc: Sequence[str | int], schema: type[BaseModel]) -> list[str]:
    """Return the keys that the schema allows at the place of an unknown one."""
    models = [schema]
    for part in loc[:-1]:
        models = _step(models, part)
    return [name for model in models for name in model.model_fields]


def _step(models: list[type[BaseModel]], part: str | int) -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    for model in models:
        if part in model.model_fields:
            found += _models(model.model_fields[str(part)].annotation)
        elif _tag(model) == part or not model.model_fields.get("kind"):
            found.append(model)
    return found or [model for model in models if _tag(model) in (part, None)] or models


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, list, dict, Annotated):
        return [model for arg in get_args(annotation) for model in _models(arg)]
    return []


def _tag(model: type[BaseModel]) -> str | None:
    kind = model.model_fields.get("kind")
    return get_args(kind.annotation)[0] if kind else None
