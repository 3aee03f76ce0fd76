"""From a file to a checked spec, with the line and column of every mistake."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from vivavoce.errors import Problem, UsageError, did_you_mean
from vivavoce.suites.dialects import Era, translate
from vivavoce.suites.document import Document, KeyPath, read_document
from vivavoce.suites.spec import SuiteSpec


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite as read; `problems` is what it asks that we cannot do, `notes` what it calls by another name."""

    spec: SuiteSpec
    document: Document
    era: Era | None
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def path(self) -> Path:
        """The file."""
        return self.document.path

    @property
    def base(self) -> Path:
        """The folder of the file."""
        return self.document.path.parent


def load_suite(path: Path, target: dict[str, Any] | None = None) -> Suite:
    """Read a suite; `target` replaces its own.

    What the file asks that we cannot do is collected in `problems`, so that a check can name everything at once.

    Raises:
        UsageError: the file does not describe a suite.
    """
    work = translate(read_document(path), target)
    document = work.document
    try:
        spec = SuiteSpec.model_validate(document.data)
    except ValidationError as error:
        raise UsageError(*work.problems, *problems_of(document, error)) from error
    return Suite(spec, document, work.era, tuple(work.notes), tuple(work.problems))


def problems_of(document: Document, error: ValidationError) -> list[Problem]:
    """Return the mistakes that validation found, each at its place in the file."""
    return [_problem(document, details) for details in error.errors(include_url=False)]


def _problem(document: Document, details: ErrorDetails) -> Problem:
    at = _in_file(document.data, details["loc"])
    kind = details["type"]
    if kind == "extra_forbidden":
        known = _known_keys(details["loc"])
        return document.problem(at, f"unknown key{did_you_mean(str(at[-1]), known)}")
    if kind == "missing":
        return document.problem(at[:-1], f"the key '{at[-1]}' is missing")
    if kind == "union_tag_not_found":
        return document.problem(at, f"the key 'kind' is missing; known: {details['ctx']['expected_tags']}")  # pyright: ignore
    if kind == "union_tag_invalid":
        context = details["ctx"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        tags = [tag.strip("' ") for tag in str(context["expected_tags"]).split(",")]
        return document.problem((*at, "kind"), f"no kind '{context['tag']}'{did_you_mean(str(context['tag']), tags)}")
    message = details["msg"].removeprefix("Value error, ")
    got = f", got {details['input']!r}" if not isinstance(details["input"], dict | list) else ""
    return document.problem(at, f"{message}{got}")


def _in_file(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Return the path in the file: the tags of unions are steps of the schema and not of the file."""
    at: list[str | int] = []
    for i, part in enumerate(loc):
        here = cast("dict[str | int, Any]", data) if isinstance(data, dict) else {}
        if i + 1 < len(loc) and here.get("kind") == part:
            continue
        at.append(part)
        items = cast("list[Any]", data) if isinstance(data, list) else []
        data = items[part] if isinstance(part, int) and part < len(items) else here.get(part)
    return tuple(at)


def _known_keys(loc: Sequence[str | int]) -> list[str]:
    """Return the keys that the schema knows where an unknown one stood."""
    models: list[type[BaseModel]] = [SuiteSpec]
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
