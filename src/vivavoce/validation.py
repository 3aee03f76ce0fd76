"""How values are validated: strictly where people write them, and by type where they are options of a function.

Records of fields that are known to be right are made without validation.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, PydanticSchemaGenerationError, TypeAdapter, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import TypeAliasType

from vivavoce.errors import UsageError, did_you_mean

M = TypeVar("M", bound=BaseModel)


def construct(kind: type[M], fields: dict[str, Any]) -> M:
    """Return a record as validation would make it; every field without a default is among those given.

    It takes a fraction of the time of `model_construct`, which reads aliases, and less than validation.
    """
    template = _TEMPLATES.get(kind)
    if template is None:
        template = _TEMPLATES[kind] = _read_template(kind)
    defaults, factories, extra = template
    values = {**defaults, **fields}
    for name, make in factories:
        if name not in fields:
            values[name] = make()
    record = _new(kind)
    _set_values(record, values)
    _set_given(record, set(fields))
    _set_extra(record, {} if extra else None)
    _set_private(record, None)
    return record


def copy_with(record: M, updates: dict[str, Any]) -> M:
    """Return a record with other values of some of its fields, which are known to be right."""
    copy = _new(type(record))
    _set_values(copy, {**vars(record), **updates})
    _set_given(copy, {*record.model_fields_set, *updates})
    _set_extra(copy, None if record.model_extra is None else dict(record.model_extra))
    private = record.__pydantic_private__
    _set_private(copy, None if private is None else dict(private))
    return copy


_new = object.__new__
_slots: Mapping[str, Any] = vars(BaseModel)
_set_values = _slots["__dict__"].__set__
_set_given = _slots["__pydantic_fields_set__"].__set__
_set_extra = _slots["__pydantic_extra__"].__set__
_set_private = _slots["__pydantic_private__"].__set__

Template = tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]], bool]
"""The fields of a class in order, those that are made again each time, and whether it keeps unknown ones."""

_TEMPLATES: dict[type[BaseModel], Template] = {}


def _read_template(kind: type[BaseModel]) -> Template:
    fields = kind.model_fields
    factories: list[tuple[str, Callable[[], Any]]] = [
        (name, cast("Callable[[], Any]", field.default_factory))
        for name, field in fields.items()
        if field.default_factory is not None
    ]
    return {name: field.default for name, field in fields.items()}, factories, kind.model_config.get("extra") == "allow"


AS_WRITTEN = {"as_written": True}
"""The context in which what a person writes is validated: there, what is empty is a mistake. A record may have it."""


class StrictInput(BaseModel):
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
    kind = PydanticCustomError("number", "must be a number, got {got}", {"got": str(value).lower()})
    return InitErrorDetails(type=kind, loc=path, input=value)


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


F = TypeVar("F", bound=Callable[..., Any])


class Omitted:
    """Stands for the default of an option, which is for the one who takes it to say."""

    def __repr__(self) -> str:
        return "..."


OMITTED = Omitted()


def shows_options(function: F) -> F:
    """Show the options of a function in `inspect.signature` and in `help`; what it takes and does stays as it is.

    Their names, types and meanings are those of the TypedDict that `**options` unpacks. A function without such a
    parameter is left alone.
    """
    signature = inspect.signature(function)
    options = _find_options(function, signature)
    if options is not None:
        own_parameters = [
            parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD
        ]
        full_signature = signature.replace(parameters=[*own_parameters, *_parameters(options)])
        function.__signature__ = full_signature  # pyright: ignore[reportFunctionMemberAccess]
        lines = [f"    {name}: {meaning}" for name, meaning in meanings(options).items()]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or "").rstrip(), "", "Options:", *lines])
    return function


@cache
def meanings(options: type) -> dict[str, str]:
    """Return what the keys of a TypedDict mean, which stands below each of them; nothing where there is no source."""
    body = ast.parse("".join(_source(options))).body
    class_node = body[0] if body and isinstance(body[0], ast.ClassDef) else None
    fields, bases = (class_node.body, class_node.bases) if class_node else ([], [])
    known = vars(sys.modules[options.__module__])
    inherited = [known.get(base.id) for base in bases if isinstance(base, ast.Name)]
    return {name: text for base in inherited for name, text in _inherited_meanings(base)} | {
        key.target.id: inspect.cleandoc(text.value.value).replace("\n", " ")
        for key, text in pairwise(fields)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _inherited_meanings(base: object) -> Iterator[tuple[str, str]]:
    if isinstance(base, type) and hasattr(base, "__total__"):
        yield from meanings(base).items()


def _source(kind: type) -> Iterator[str]:
    """Yield the lines of a class, found without reading what else its file says."""
    lines = iter(linecache.getlines(sys.modules[kind.__module__].__file__ or ""))
    for line in lines:
        if line.startswith(f"class {kind.__name__}("):
            yield line
            yield from takewhile(lambda line: line[:1].isspace(), lines)


def _find_options(function: Callable[..., Any], signature: inspect.Signature) -> type | None:
    """Return the TypedDict that a function takes its options from, None where it has no such parameter."""
    last = next(
        (parameter for parameter in signature.parameters.values() if parameter.kind is parameter.VAR_KEYWORD), None
    )
    text = None if last is None else last.annotation
    if not (isinstance(text, str) and text.startswith("Unpack[")):
        return None
    kind = vars(sys.modules[function.__module__]).get(text.removeprefix("Unpack[").removesuffix("]"))
    return kind if isinstance(kind, type) else None


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    for name, kind in options.__annotations__.items():
        annotation = getattr(kind, "__forward_arg__", kind)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OMITTED, annotation=annotation)


def read_options(
    function: Callable[..., Any], options: Mapping[str, Any], label: str, skipped: int = 0
) -> dict[str, Any]:
    """Return options with the types of the parameters of a function or a class; its first `skipped` ones are left out.

    Raises:
        UsageError: an option is unknown, missing, or of the wrong type; the message begins with `label`.
    """
    parameters = list(inspect.signature(function).parameters.values())
    known = {p.name: p for p in parameters[skipped:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for name in options:
        if name not in known and not takes_any:
            raise UsageError(f"{label}: no option '{name}'{did_you_mean(name, known) or '; it takes none'}")
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in options:
            raise UsageError(f"{label}: the option '{name}' is missing")
    hints = get_type_hints(function.__init__ if isinstance(function, type) else function)
    return {
        name: _validate(value, hints.get(name, Any), f"{label}: option '{name}'") for name, value in options.items()
    }


def _validate(value: Any, hint: Any, where: str) -> Any:
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{where}: {first['msg']}, got {value!r}") from error
    except PydanticSchemaGenerationError:
        return value  # a user-defined type, which the function checks itself
