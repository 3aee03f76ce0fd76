"""Options of functions: read from a suite, and shown one by one where a function takes `**options: Unpack[…]`."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise, takewhile
from typing import Any, TypeVar, get_type_hints

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from vivavoce.errors import UsageError, did_you_mean

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
    options = _unpacked(function, signature)
    if options is not None:
        named = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        shown = signature.replace(parameters=[*named, *_parameters(options)])
        function.__signature__ = shown  # pyright: ignore[reportFunctionMemberAccess]
        lines = [f"    {name}: {meaning}" for name, meaning in meanings(options).items()]
        function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or "").rstrip(), "", "Options:", *lines])
    return function


@cache
def meanings(options: type) -> dict[str, str]:
    """Return what the keys of a TypedDict mean, which stands below each of them; nothing where there is no source."""
    body = ast.parse("".join(_source(options))).body
    named = body[0] if body and isinstance(body[0], ast.ClassDef) else None
    fields, bases = (named.body, named.bases) if named else ([], [])
    known = vars(sys.modules[options.__module__])
    inherited = [known.get(base.id) for base in bases if isinstance(base, ast.Name)]
    return {name: text for base in inherited for name, text in _inherited(base)} | {
        key.target.id: inspect.cleandoc(text.value.value).replace("\n", " ")
        for key, text in pairwise(fields)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _inherited(base: object) -> Iterator[tuple[str, str]]:
    if isinstance(base, type) and hasattr(base, "__total__"):
        yield from meanings(base).items()


def _source(kind: type) -> Iterator[str]:
    """Yield the lines of a class, found without reading what else its file says."""
    lines = iter(linecache.getlines(sys.modules[kind.__module__].__file__ or ""))
    for line in lines:
        if line.startswith(f"class {kind.__name__}("):
            yield line
            yield from takewhile(lambda one: one[:1].isspace(), lines)


def _unpacked(function: Callable[..., Any], signature: inspect.Signature) -> type | None:
    """Return the TypedDict that a function takes its options from, None where it has no such parameter."""
    last = next((one for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD), None)
    text = None if last is None else last.annotation
    if not (isinstance(text, str) and text.startswith("Unpack[")):
        return None
    found = vars(sys.modules[function.__module__]).get(text.removeprefix("Unpack[").removesuffix("]"))
    return found if isinstance(found, type) else None


def _parameters(options: type) -> Iterator[inspect.Parameter]:
    for name, kind in options.__annotations__.items():
        shown = getattr(kind, "__forward_arg__", kind)
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=OMITTED, annotation=shown)


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
        name: _validated(value, hints.get(name, Any), f"{label}: option '{name}'") for name, value in options.items()
    }


def _validated(value: Any, hint: Any, where: str) -> Any:
    try:
        return TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{where}: {first['msg']}, got {value!r}") from error
    except PydanticSchemaGenerationError:
        return value  # a user-defined type, which the function checks itself
