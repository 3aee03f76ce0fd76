"""What checking one value against a JSON schema may cost, in steps, references, and seconds of patterns.

A short schema can ask for endless work: `allOf` with two references to the next definition, 30 times, is a billion
checks, and a definition that refers to itself never ends. A thread cannot be stopped from outside, so every keyword
counts what it does, and a check that costs too much ends with a fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from vivavoce import expressions
from vivavoce.errors import GraderFault, UsageError
from vivavoce.models.schema_patterns import schema_pattern
from vivavoce.work_time import counted_work

MAX_SCHEMA_NODES = 10_000
"""Values in a schema, at all levels."""

MAX_SCHEMA_DEPTH = 100
"""Levels of a schema."""

MAX_STEPS = 200_000
"""Keywords that one check evaluates, and mistakes that they find; a keyword counts once more for 16 items of a list."""

MAX_REFERENCES = 100
"""References that are followed one inside another."""

_ITEMS_PER_STEP = 16
_CHARS_PER_STEP = 1_000
_MAX_MESSAGE_CHARS = 500
_LONG_LIST = 100
_LISTS_OF_NAMES = frozenset(("required", "type"))


@dataclass(slots=True)
class _Budget:
    """What is left for the check in progress."""

    steps: int = MAX_STEPS
    references: int = 0
    pattern_seconds: float = 0.0

    def take(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise GraderFault(f"the JSON schema takes more than {MAX_STEPS:,} steps on this value", kind="limit")


_budget: ContextVar[_Budget] = ContextVar("schema_budget")


@contextmanager
def bounded_check() -> Generator[None]:
    """Count the steps of one check from 0.

    Raises:
        GraderFault: the check goes beyond a limit, or nests deeper than Python can call.
    """
    token = _budget.set(_Budget())
    try:
        with counted_work():
            yield
    except RecursionError as error:
        raise _too_many_references() from error
    finally:
        _budget.reset(token)


def _too_many_references() -> GraderFault:
    return GraderFault(
        f"the JSON schema follows more than {MAX_REFERENCES} references one inside another", kind="limit"
    )


def count_steps(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword of `jsonschema` that counts its steps, and shortens its messages, which may quote the value."""

    def count(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        budget = _budget.get()
        budget.take(1 + (_length(expected) + _length(value)) // _ITEMS_PER_STEP)
        for error in keyword(validator, expected, value, schema) or ():
            budget.take(1 + len(error.message) // _CHARS_PER_STEP)
            error.message = error.message[:_MAX_MESSAGE_CHARS]
            yield error

    return count


def counted_reference(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that follows a reference, with a limit on references inside references."""
    steps = count_steps(keyword)

    def follow(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        budget = _budget.get()
        budget.references += 1
        if budget.references > MAX_REFERENCES:
            raise _too_many_references()
        try:
            yield from steps(validator, expected, value, schema)
        finally:
            budget.references -= 1

    return follow


def counted_comparison(keyword: Callable[..., Iterator[Any] | None]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that compares whole values, where each value inside them counts."""
    steps = count_steps(keyword)

    def compare(validator: Any, expected: Any, value: Any, schema: Any) -> Iterator[Any]:
        _budget.get().take(measure(expected)[0] // _ITEMS_PER_STEP)
        yield from steps(validator, expected, value, schema)

    return compare


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern of a schema matches somewhere in a text.

    Raises:
        GraderFault: this search, or all searches of the check together, take too long.
    """
    budget = _budget.get()
    budget.take(len(text) // _CHARS_PER_STEP)
    began = time.perf_counter()
    matches = schema_pattern(pattern).found_in(text)
    budget.pattern_seconds += time.perf_counter() - began
    if budget.pattern_seconds > expressions.SECONDS:
        raise GraderFault(f"the patterns of the JSON schema take longer than {expressions.SECONDS:g} s", kind="timeout")
    return matches


def check_size(schema: object) -> None:
    """Check that a schema is small enough to be checked itself.

    Raises:
        UsageError: it has too many values or levels, or a long list of names that holds something else: the library
            compares such items each with each.
    """
    nodes, depth = measure(schema)
    if nodes > MAX_SCHEMA_NODES:
        raise UsageError(f"the JSON schema has {nodes:,} values, at most {MAX_SCHEMA_NODES:,} allowed")
    if depth > MAX_SCHEMA_DEPTH:
        raise UsageError(f"the JSON schema is nested {depth} levels deep, at most {MAX_SCHEMA_DEPTH} allowed")
    _check_names(schema, "")


def _check_names(schema: object, key: str) -> None:
    if isinstance(schema, dict):
        for name, value in cast("dict[str, object]", schema).items():
            _check_names(value, "required" if key == "dependentRequired" else name)
    elif isinstance(schema, list):
        items = cast("list[object]", schema)
        if key in _LISTS_OF_NAMES and len(items) > _LONG_LIST and not all(isinstance(item, str) for item in items):
            raise UsageError(f"the JSON schema is not valid: '{key}' must be a list of names")
        for item in items:
            _check_names(item, "")


def measure(value: object) -> tuple[int, int]:
    """Return how many values a JSON value consists of, and how many levels deep it is."""
    count = deepest = 0
    pending = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        count, deepest = count + 1, max(deepest, depth)
        if isinstance(part, Mapping):
            pending += [(item, depth + 1) for item in cast("Mapping[str, object]", part).values()]
        elif isinstance(part, list):
            pending += [(item, depth + 1) for item in cast("list[object]", part)]
    return count, deepest


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list | dict) else 0
