"""Keys of a row that are no field: which of them look like a test that would be ignored, and which are just data.

Other tools have other names for assertions and for what is known about the right answer. A row with such a key would
run without its test, so the key is refused. A key that is meant as data goes under `metadata`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from vivavoce.comparing.json_values import BrokenJson, parse

_ASSERTION_NAMES = """
contains not_contains equals regex numeric one_of json_schema state final_state calls no_call latency judged metric all
any not
"""
ASSERTIONS = frozenset(_ASSERTION_NAMES.split())
"""The names of the assertions that `expect` may hold."""

_OPTIONS = frozenset(
    ("weight", "severity", "tolerance", "relative", "take", "mode", "arguments", "outcome", "threshold", "config")
) | {"type", "value"}
_PLAIN_WORDS = frozenset(("state", "final_state", "calls", "latency", "metric", "all", "any", "not"))
"""Names of assertions that are keys of plain data as well."""

_ASSERTIONS_ELSEWHERE = """
assert asserts assertion assertions check checks expects expectation expectations tests evaluations should_contain
should_not_contain must_contain must_not_contain
"""
_OF_ASSERTIONS = frozenset(_ASSERTIONS_ELSEWHERE.split()) | (ASSERTIONS - _PLAIN_WORDS)
_TRUTHS_ELSEWHERE = """
expected expected_output expected_outputs expected_answer expected_answers expected_response expected_responses
expected_outcome expected_outcomes expected_result expected_results expected_value expected_text expected_completion
answer answers ideal ideal_answer ideal_output ideal_response gold gold_answer gold_label golden golden_answer
golden_output golden_response groundtruth
ground_truths truth reference_answer reference_answers reference_output reference_outputs reference_response
reference_text references correct_answer correct_answers solution label target
"""
_OF_TRUTHS = frozenset(_TRUTHS_ELSEWHERE.split())
_CALLS_ELSEWHERE = """
expected_tools expected_tool_calls expected_calls expected_functions expected_function_calls expected_trajectory
expect_tools reference_tools reference_calls reference_trajectory
"""
_OF_CALLS = frozenset(_CALLS_ELSEWHERE.split())
_OF_DATA_TOO = frozenset(("label", "target"))
"""Names of truths that are data where the row says otherwise what is right."""
_TRUTHS = ("ground_truth", "reference", "expect", "reference_tool_calls")


@dataclass(slots=True)
class UnknownKeys:
    """The keys of rows that are no field, by name; a row with one that looks like a test is refused.

    In rows of a `log`, which is judged and was not written as a test, names such as `answer` are data; only what can be
    nothing but an assertion is refused.
    """

    log: bool = False
    names: dict[str, None] = field(default_factory=dict[str, None])

    def problem(self, key: str, value: object, row: Mapping[str, Any]) -> str | None:
        """Return why a key cannot be kept as data, None where it can; `row` is the whole row."""
        meant = _meant(_snake_case(key), value, row, log=self.log)
        if meant is None:
            self.names[key] = None
            return None
        return (
            f"{key}: unknown key, which would be ignored; did you mean '{meant}'? (move it into 'metadata' if it is "
            "meant as data)"
        )


def _meant(key: str, value: object, row: Mapping[str, Any], *, log: bool) -> str | None:
    """Return the field that a key seems to mean, None where it seems to be data."""
    if value is None or value in ("", [], {}):
        return None
    if looks_like_assertions(value, log=log) or (key in _OF_ASSERTIONS and not log):
        return "expect"
    if log:
        return None
    if key in _OF_CALLS:
        return "reference_tool_calls"
    if key not in _OF_TRUTHS or (key in _OF_DATA_TOO and (isinstance(value, Mapping) or _has_truth(row))):
        return None
    return "ground_truth"


def _snake_case(key: str) -> str:
    """Return a key as the lists here have it: `expectedOutput` and `__expected1` of other tools too."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)
    return words.lower().replace("-", "_").replace(" ", "_").strip("_").rstrip("0123456789").rstrip("_") or key


def _has_truth(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is not None for name in _TRUTHS)


def is_known_elsewhere(key: str) -> bool:
    """Return whether a key is a word of other tools, and so no misspelt field."""
    return _snake_case(key) in _OF_ASSERTIONS - {"expects"} | _OF_TRUTHS - {"label", "groundtruth"} | _OF_CALLS


def looks_like_assertions(value: object, *, log: bool = False) -> bool:
    """Return whether a value is an assertion, or a list of some; a text may hold it as JSON.

    In a `log`, keys that plain data has as well say nothing.
    """
    if isinstance(value, str):
        if value.lstrip()[:1] not in ("[", "{"):
            return False
        try:
            return looks_like_assertions(parse(value), log=log)
        except BrokenJson:
            return False
    if isinstance(value, Mapping):
        return _is_assertion(cast("Mapping[object, object]", value), alone=True, log=log)
    return _are_assertions(value, log=log)


def _are_assertions(value: object, *, log: bool) -> bool:
    """Return whether a value is a list of assertions, of lists of them for each turn, and of nothing else."""
    items = [item for item in cast("list[object]", value) if item is not None] if isinstance(value, list) else []
    return bool(items) and all(
        _is_assertion(cast("Mapping[object, object]", item), alone=log, log=log)
        if isinstance(item, Mapping)
        else _are_assertions(item, log=log)
        for item in items
    )


def _is_assertion(value: Mapping[object, object], *, alone: bool, log: bool) -> bool:
    """Return whether a mapping is an assertion of ours, or one such as `{type: contains, value: …}`."""
    keys = {str(key) for key in value}
    kinds = keys & ASSERTIONS
    if not keys <= ASSERTIONS | _OPTIONS:
        return False
    if not kinds:
        return "type" in keys and _plain_kind(value["type"]) in ASSERTIONS - _PLAIN_WORDS
    if len(kinds) > 1:
        return False
    (kind,) = kinds
    if kind in ("all", "any", "not"):
        inner = value[kind]
        items = [inner] if kind == "not" else inner
        return _are_assertions(items, log=log)
    return not (alone and kind in _PLAIN_WORDS)


def _plain_kind(kind: object) -> str:
    """Return the kind of an assertion of another tool by our name: `not-icontains` is `contains`."""
    plain = str(kind).lower().replace("-", "_").removeprefix("not_")
    return "contains" if plain == "icontains" else plain
