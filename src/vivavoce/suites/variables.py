"""`${NAME}` and `${NAME:-default}` in a suite: read from the environment with it, and stored as they are written.

The request of a target is left to the target, where a value can be neither a template nor stored. Texts that a model or
a reader gets are as they are: in a prompt or a row, `${…}` is something that somebody says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from vivavoce.errors import Problem, UsageError
from vivavoce.suites.document import Described, KeyPath
from vivavoce.targets.environment import VARIABLE, fill, unset_in

OF_THE_TARGET = frozenset(("url", "base_url", "headers", "body", "settings", "api_key", "mcp"))
"""Keys of a target in which variables are read when it is made."""

_TEXTS_OF_TARGETS = frozenset(("system_prompt", "tools", "flags"))
_CODE_OF_HANDLERS = frozenset(("function", "recordings", "timeout"))
_TEXTS_OF_GRADERS = frozenset(("prompt", "system_prompt"))
_TEXTS_OF_TESTER = (("tester", "persona"), ("tester", "personas"), ("tester", "graph"))
_TEXTS = frozenset((("description",), ("dataset", "rows"), ("dataset", "policy"), *_TEXTS_OF_TESTER))


def filled(document: Described) -> dict[str, Any]:
    """Return the data of a suite with the values of its variables.

    Raises:
        UsageError: with every variable that is not set and has no default, each at its place.
    """
    problems: list[Problem] = []

    def value(at: KeyPath, text: str) -> str:
        for name in unset_in(text):
            rule = f"the environment variable {name} is not set; ${{{name}:-…}} gives a default"
            problems.append(document.problem(at, f"{rule}, and $${{{name}}} is the text itself"))
        return fill(text)

    data = _replaced(document.data, value)
    if problems:
        raise UsageError(*problems)
    return data


def as_written(data: dict[str, Any], document: Described) -> dict[str, Any]:
    """Return a suite as data with its variables as they are written in a document, and not their values."""
    written: dict[KeyPath, str] = {}

    def note(at: KeyPath, text: str) -> str:
        written[("dataset", "path") if at == ("dataset",) else at] = text
        return text

    _replaced(document.data, note)
    return _restored(data, written) if written else data


def _restored(value: Any, written: Mapping[KeyPath, str], at: KeyPath = ()) -> Any:
    """Return a structure with what is written at its places."""
    if at in written:
        return written[at]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _restored(inner, written, (*at, key)) for key, inner in items}
    if isinstance(value, list):
        return [_restored(inner, written, (*at, index)) for index, inner in enumerate(cast("list[Any]", value))]
    return value


def _replaced(value: Any, by: Callable[[KeyPath, str], str], at: KeyPath = ()) -> Any:
    """Return a structure with each text in which variables are read here replaced."""
    if _is_left(at):
        return value
    if isinstance(value, str):
        return by(at, value) if VARIABLE.search(value) else value
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _replaced(inner, by, (*at, key)) for key, inner in items}
    if isinstance(value, list):
        return [_replaced(inner, by, (*at, index)) for index, inner in enumerate(cast("list[Any]", value))]
    return value


def _is_left(at: KeyPath) -> bool:
    """Return whether variables are not read at a place: in the request of a target, and in texts for readers."""
    if at[:1] in (("target",), ("targets",)):
        in_target = at[1:] if at[0] == "target" else at[2:]
        if in_target[:1] == ("handlers",):
            return len(in_target) == 3 and in_target[2] not in _CODE_OF_HANDLERS
        return len(in_target) == 1 and in_target[0] in OF_THE_TARGET | _TEXTS_OF_TARGETS
    return at in _TEXTS or (len(at) == 3 and at[0] == "graders" and at[2] in _TEXTS_OF_GRADERS)
