"""Code written for other tools: the results it returns, and the messages it reads.

A result class of another tool is accepted if it has the attributes `score`, `rationale` and `metadata`. A function that
was written for the messages of a Letta server gets such messages.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, cast

from vivavoce.errors import GraderFault
from vivavoce.foreign_code import plain_number

LETTA = "_reads_letta"
"""The mark of a function that was decorated as one of letta-evals, where that is not installed."""
_MARKS = ("_is_extractor", "_is_reward_composer")
"""The marks of its own decorators."""
_OF_MESSAGES = ("letta_client", "letta_evals.extractors")
"""Packages whose functions and classes read trajectories of Letta's own messages."""
_FIELDS = frozenset(("message_type", "tool_return"))
"""Fields that only Letta's messages have."""


def from_foreign(value: Any) -> Any:
    """Return the result of another tool as a dict with `score`, `rationale` and `metadata`; any other value unchanged.

    Raises:
        GraderFault: the result reports an error, or its score is not a number.
    """
    kind = type(cast("object", value))
    plain = issubclass(kind, type | Mapping) or kind.__module__.partition(".")[0] == "vivavoce"
    if plain or plain_number(value) is not None or not hasattr(value, "score"):
        return value
    name = f"{kind.__module__}.{kind.__qualname__}"
    score = plain_number(value.score)
    if score is None:
        raise GraderFault(f"a grader returned a {name} whose score is {value.score!r}, not a number", kind="format")
    metadata = getattr(value, "metadata", None)
    known = dict(cast("Mapping[str, Any]", metadata)) if isinstance(metadata, Mapping) else {}
    if known.get("error"):  # letta-evals reports errors so, with a score of 0
        raise GraderFault(f"a grader returned a {name} with the error: {known['error']}")
    rationale = getattr(value, "rationale", None)
    return {
        "score": score,
        "rationale": None if rationale is None else str(rationale),
        "metadata": known,
    }


def reads_letta(function: Callable[..., Any]) -> bool:
    """Return whether a user's function was written for the messages of a Letta server.

    It is marked by a decorator of letta-evals, or it uses their classes or their fields.
    """
    marked = any(getattr(function, mark, False) for mark in (LETTA, *_MARKS))
    return marked or next(_foreign_names(inspect.unwrap(function), set()), None) is not None


def _foreign_names(function: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names from other tools that a function uses, itself or in the functions that it calls."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or id(code) in seen:
        return
    seen.add(id(code))
    for name in _names(code):
        if name in _FIELDS:
            yield name
        used = function.__globals__.get(name)
        origin = used.__name__ if isinstance(used, ModuleType) else str(getattr(used, "__module__", ""))
        if used is None:
            origin = name  # of an import inside the function
        if any(origin == package or origin.startswith(f"{package}.") for package in _OF_MESSAGES):
            yield origin if origin.endswith(name) else f"{origin}.{name}"
        elif callable(used):
            yield from _foreign_names(inspect.unwrap(used), seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)
