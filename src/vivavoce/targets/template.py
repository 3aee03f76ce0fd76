"""Templates of a request, and the places in a response that hold the reply.

The suite's author writes the template; text of a model or a dataset is only ever a value in it and is never rendered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, cast
from urllib.parse import quote, urlsplit

from jinja2 import TemplateError, Undefined, meta

from vivavoce.errors import SuiteFault, UsageError, did_you_mean
from vivavoce.records.score import shorten
from vivavoce.safe_template import SafeEnvironment


class NotThere(LookupError):
    """Nothing stands at a path; the text says which step fails, and what is there instead."""


def value_at(payload: Any, path: str) -> object:
    """Return what stands at a path; the empty one is the whole.

    Raises:
        NotThere: nothing does.
    """
    here = payload
    for step in _steps(path):
        try:
            here = here[int(step) if isinstance(here, list) else step]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise NotThere(f"no '{step}' in {shape_of(here)}") from error
    return here


def _steps(path: str) -> list[str]:
    return [step for step in path.removeprefix("$").replace("[", ".").replace("]", "").split(".") if step]


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """Return whether a value is an object of JSON."""
    return isinstance(value, dict)


def shape_of(value: Any) -> str:
    """Return in words what a value of JSON is."""
    if is_object(value):
        return f"an object with {', '.join(value)[:200] or 'no keys'}"
    return f"a list of {len(cast('list[object]', value))}" if isinstance(value, list) else json.dumps(value)[:80]


_ONE_VARIABLE = re.compile(r"\s*\{\{-?\s*([A-Za-z_]\w*(?:\.\w+|\[[^\[\]{}]+\])*)\s*-?\}\}\s*")

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template: `variables` are the names it uses, `fill` makes what is sent."""

    variables: frozenset[str]
    place: str
    _fill: Callable[[Values], object]

    def fill(self, values: Values) -> Any:
        """Return the structure with the values in it.

        Raises:
            SuiteFault: it uses something that this sample does not have.
        """
        try:
            return self._fill(values)
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise SuiteFault(f"{self.place}: {shorten(str(error))}", kind="template") from error


def structure_template(structure: object, place: str, allowed: Sequence[str]) -> Template:
    """Compile a structure of dicts, lists and scalars.

    A text that is exactly one variable becomes that value, list or dict as it may be; any other text is rendered.

    Raises:
        UsageError: a text is not a valid template or names an unknown variable; the message names its place.
    """
    if isinstance(structure, str):
        return _text_template(structure, place, allowed)
    if isinstance(structure, Mapping):
        rows = cast("Mapping[str, object]", structure)
        fields = {key: structure_template(value, f"{place}.{key}", allowed) for key, value in rows.items()}
        return _joined(place, fields.values(), lambda values: {key: part.fill(values) for key, part in fields.items()})
    if isinstance(structure, list | tuple):
        items = enumerate(cast("Sequence[object]", structure))
        parts = [structure_template(value, f"{place}.{index}", allowed) for index, value in items]
        return _joined(place, parts, lambda values: [part.fill(values) for part in parts])
    return Template(frozenset(), place, lambda values: structure)


def address_template(text: str, place: str, allowed: Sequence[str]) -> Template:
    """Compile a web address; values are percent-encoded, so that none reaches another part of it.

    Raises:
        UsageError: it is not a valid template, or leaves the host open.
    """
    if "{" in urlsplit(text).netloc:
        raise UsageError(f"{place}: '{text}' leaves the host open; use variables only after the host")
    return Template(_variables(text, place, allowed), place, _addresses.from_string(text).render)


def header_lines(values: Mapping[str, object], place: str) -> dict[str, str]:
    """Return headers as text, without those that have no value yet.

    Raises:
        SuiteFault: a value is not one line.
    """
    lines = {key: str(value) for key, value in values.items() if value is not None}
    for key, line in lines.items():
        if not line.isprintable():
            raise SuiteFault(f"{place}.{key}: the value is not one line of text", kind="template")
    return lines


def _joined(place: str, parts: Iterable[Template], fill: Callable[[Values], object]) -> Template:
    return Template(frozenset[str]().union(*(part.variables for part in parts)), place, fill)


def _text_template(text: str, place: str, allowed: Sequence[str]) -> Template:
    variables = _variables(text, place, allowed)
    if not (alone := _ONE_VARIABLE.fullmatch(text)):
        return Template(variables, place, _texts.from_string(text).render)
    look_up = _texts.evaluate(alone[1])

    def value(values: Values) -> object:
        result = look_up(values)
        if isinstance(result, Undefined):
            str(result)  # a strict undefined says here what is missing
        return result

    return Template(variables, place, value)


def _variables(text: str, place: str, allowed: Sequence[str]) -> frozenset[str]:
    try:
        names = meta.find_undeclared_variables(_texts.parse(text))
        _texts.from_string(text)
    except (TemplateError, ValueError) as error:  # such as a number with too many digits
        raise UsageError(f"{place}: '{shorten(text, 200)}' is not a valid template: {error}") from error
    for name in sorted(names):
        if name not in allowed:
            raise UsageError(f"{place}: no variable '{name}'{did_you_mean(name, allowed)}")
    return frozenset(names)


def _encoded(value: object) -> str:
    return quote(str(value), safe="")


_texts = SafeEnvironment(keep_trailing_newline=True)
_addresses = SafeEnvironment(finalize=_encoded)
