"""`${NAME}` and `${NAME:-default}`: read from the environment where they are used, so that no key is in a suite.

A variable that is blank counts as not set. `$${NAME}` is the text `${NAME}` itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from vivavoce.errors import UsageError

VARIABLE = re.compile(r"\$(?P<text>\$\{[^{}]*\})|\$\{(?P<name>\w+)(?::-(?P<default>[^{}]*))?\}")

_BRACES = re.compile(r"\$\{[^{}]*\}")


def fill(text: str) -> str:
    """Return a text with the values of its variables, all of which are set or have a default."""
    return VARIABLE.sub(lambda found: found["text"] or _value(found) or "", text)


def literal(text: str) -> str:
    """Return a text as a suite has it where its variables are text: reading the suite gives the text again."""
    return _BRACES.sub(r"$\g<0>", text) if VARIABLE.search(text) else text


def unescape(text: str) -> str:
    """Return a text without the second dollar of `$${NAME}`; no variable is read."""
    return VARIABLE.sub(lambda match: match["text"] or match[0], text)


def unset_in(text: str) -> list[str]:
    """Return the variables of a text that are not set and have no default."""
    found = VARIABLE.finditer(text)
    return list(dict.fromkeys(one["name"] for one in found if one["name"] and _value(one) is None))


def environment_of(value: object, place: str) -> dict[str, str]:
    """Return the values of the variables in the texts of a structure, by the names that `as_variables` gives them.

    Raises:
        UsageError: one is not set, or blank; values are never shown.
    """
    texts = list(_texts(value))
    missing = {name for text in texts for name in unset_in(text)}
    if missing:
        raise UsageError(*(f"{place}: the environment variable {name} is not set" for name in sorted(missing)))
    found = [one for text in texts for one in VARIABLE.finditer(text) if one["name"]]
    return {_key(one): _value(one) or "" for one in found}


def from_environment(value: Any, place: str) -> Any:
    """Return a structure with the values of the environment in its texts.

    Raises:
        UsageError: a variable is not set.
    """
    environment_of(value, place)
    return _mapped(value, fill)


def as_variables(value: Any) -> Any:
    """Return a template in which `${NAME}` is the variable `environment.NAME`, so that its value is only data."""
    return _mapped(value, lambda text: VARIABLE.sub(_as_variable, text))


def _as_variable(found: re.Match[str]) -> str:
    return found["text"] or f"{{{{ environment.{_key(found)} }}}}"


def _key(found: re.Match[str]) -> str:
    """Return the name of a variable in a template; one with a default has a name of its own for that default."""
    default = found["default"]
    if default is None:
        return found["name"]
    return f"{found['name']}__{hashlib.blake2b(default.encode(), digest_size=4).hexdigest()}"


def _value(found: re.Match[str]) -> str | None:
    return os.environ.get(found["name"], "").strip() or found["default"]


def _mapped(value: Any, by: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return by(value)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, by) for key, inner in cast("Mapping[Any, Any]", value).items()}
    return [_mapped(inner, by) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[object, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)
