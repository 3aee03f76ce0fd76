"""What a conversation changed in the state of its row: each path with its value before, after, and as expected."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from vivavoce.comparing.json_values import same_json
from vivavoce.metrics.exact.arguments import at_path
from vivavoce.records.run import Attempt

Found = tuple[JsonValue] | None
"""A value alone in a tuple, None where there is none."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A path of the state with its value before, after, and as it was expected, None where there is none.

    `holds` says whether what the row expects came true, None where it expects nothing of this path.
    """

    path: str
    before: Found
    after: Found
    expected: Found = None
    holds: bool | None = None


def state_changes(attempt: Attempt) -> list[StateChange]:
    """Return what changed, and what the row expects and did not come true; nothing where no state is recorded.

    Of expectations those count that have to hold: not those under `not` and `any`.
    """
    row = cast("Mapping[str, JsonValue]", json.loads(attempt.sample))
    after = cast("JsonValue", attempt.trajectory.state)
    before = row.get("state")
    start = dict(_leaves(before)) if isinstance(before, dict) else {}
    wanted = list(_wanted(row.get("expect")))
    if after is None or not (isinstance(before, dict) or wanted):
        return []
    end = dict(_leaves(after))
    expected = {path: value for base, value in wanted for path, value in _expected(base, value, after)}
    paths = {**start, **(end if isinstance(before, dict) else {}), **expected}
    found = (_change(path, start, end, expected) for path in paths)
    known = isinstance(before, dict)
    return [one for one in found if one.holds is False or (known and not _same(one.before, one.after))]


def _change(
    path: str, start: Mapping[str, JsonValue], end: Mapping[str, JsonValue], expected: Mapping[str, Found]
) -> StateChange:
    before, after = ((side[path],) if path in side else None for side in (start, end))
    if path not in expected:
        return StateChange(path, before, after)
    return StateChange(path, before, after, expected[path], _same(after, expected[path]))


def _same(one: Found, other: Found) -> bool:
    return one is other if one is None or other is None else same_json(one[0], other[0])


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the values that hold no others, and empty ones, with their paths."""
    pending = [(path, value)]  # a list instead of recursion: a state may nest deeper than Python can call
    while pending:
        place, one = pending.pop()
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        steps = [(f"{place}.{key}" if place else str(key), each) for key, each in inner]
        if steps:
            pending += reversed(steps)
        else:
            yield place, one


def _wanted(expect: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield what the assertions of a row want at which path of the state, "" for all of it."""
    if isinstance(expect, list):
        for one in expect:
            yield from _wanted(one)
    elif isinstance(expect, dict):
        yield from _wanted(expect.get("all"))
        state = expect.get("state")
        yield from state.items() if isinstance(state, dict) else ()
        if "final_state" in expect:
            yield "", expect["final_state"]


def _expected(base: str, wanted: JsonValue, after: JsonValue) -> Iterator[tuple[str, Found]]:
    """Yield what is expected below a path: each value that is wanted, and None for one that is there unwanted."""
    actual = (after,) if not base else at_path(after, base)
    inside = dict(_leaves(wanted, base))
    for path in _leaves(actual[0], base) if actual is not None else ():
        if path[0] not in inside:
            yield path[0], None
    yield from ((path, (value,)) for path, value in inside.items())
