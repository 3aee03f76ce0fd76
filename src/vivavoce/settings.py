"""The environment and the defaults, read whenever they are needed and never at import."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from vivavoce.errors import UsageError

WORKSPACE = Path(".vivavoce")
"""The folder, below where the command runs, that holds the store and other files."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in the environment, except addresses and keys of models: those are read where a model is opened."""

    store: str
    """Where records live: a path to an SQLite file."""
    judge: str | None = None
    """The name of the model that judges where none is given; there is no other default, for asking one costs money."""
    tester: str | None = None
    """The name of the model that plays the user, and writes scenarios, where none is given."""
    target: str | None = None
    """What tests in pytest talk to where their configuration names no target."""


def settings() -> Settings:
    """Return the settings in the environment now; `VIVAVOCE_STORE` names another store, `VIVAVOCE_JUDGE` a model.

    `VIVAVOCE_TESTER` names the model that plays the user, `VIVAVOCE_TARGET` what tests in pytest talk to. Nothing is
    kept: a notebook may set them at any time.
    """
    return Settings(
        store=os.environ.get("VIVAVOCE_STORE") or str(WORKSPACE / "vivavoce.db"),
        judge=os.environ.get("VIVAVOCE_JUDGE") or None,
        tester=os.environ.get("VIVAVOCE_TESTER") or None,
        target=os.environ.get("VIVAVOCE_TARGET") or None,
    )


@cache
def user_name() -> str:
    """Return the system's name of the user who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        return "somebody"


VARIABLE = re.compile(r"\$(?P<text>\$\{[^{}]*\})|\$\{(?P<name>\w+)(?::-(?P<default>[^{}]*))?\}")
_BRACES = re.compile(r"\$\{[^{}]*\}")


def fill(text: str) -> str:
    """Return a text with the values of its variables, all of which are set or have a default."""
    return VARIABLE.sub(lambda match: match["text"] or _value(match) or "", text)


def literal(text: str) -> str:
    """Return a text as a suite has it where its variables are text: reading the suite gives the text again."""
    return _BRACES.sub(r"$\g<0>", text) if VARIABLE.search(text) else text


def unescape(text: str) -> str:
    """Return a text without the second dollar of `$${NAME}`; no variable is read."""
    return VARIABLE.sub(lambda match: match["text"] or match[0], text)


def unset_in(text: str) -> list[str]:
    """Return the variables of a text that are not set and have no default."""
    matches = VARIABLE.finditer(text)
    return list(dict.fromkeys(match["name"] for match in matches if match["name"] and _value(match) is None))


def environment_of(value: object, place: str) -> dict[str, str]:
    """Return the values of the variables in the texts of a structure, by the names that `as_variables` gives them.

    Raises:
        UsageError: one is not set, or blank; values are never shown.
    """
    texts = list(_texts(value))
    missing = {name for text in texts for name in unset_in(text)}
    if missing:
        raise UsageError(*(f"{place}: the environment variable {name} is not set" for name in sorted(missing)))
    matches = [match for text in texts for match in VARIABLE.finditer(text) if match["name"]]
    return {_key(match): _value(match) or "" for match in matches}


def from_environment(value: Any, place: str) -> Any:
    """Return a structure with the values of the environment in its texts.

    Raises:
        UsageError: a variable is not set.
    """
    environment_of(value, place)
    return _map_texts(value, fill)


def as_variables(value: Any) -> Any:
    """Return a template in which `${NAME}` is the variable `environment.NAME`, so that its value is only data."""
    return _map_texts(value, lambda text: VARIABLE.sub(_as_variable, text))


def _as_variable(match: re.Match[str]) -> str:
    return match["text"] or f"{{{{ environment.{_key(match)} }}}}"


def _key(match: re.Match[str]) -> str:
    """Return the name of a variable in a template; one with a default has a name of its own for that default."""
    default = match["default"]
    if default is None:
        return match["name"]
    return f"{match['name']}__{hashlib.blake2b(default.encode(), digest_size=4).hexdigest()}"


def _value(match: re.Match[str]) -> str | None:
    return os.environ.get(match["name"], "").strip() or match["default"]


def _map_texts(value: Any, by: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return by(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(inner, by) for key, inner in cast("Mapping[Any, Any]", value).items()}
    return [_map_texts(inner, by) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[object, object]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _texts(inner)
