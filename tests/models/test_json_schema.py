from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import GraderFault, UsageError
from vivavoce.models.json_schema import mismatch

ENDLESS = "(a|aa)+$"
HOSTILE = "a" * 60 + "!"


def test_a_schema_that_is_not_valid_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="the JSON schema is not valid at"):
        mismatch({}, {"type": "objekt"})


def test_a_reference_to_a_web_address_is_not_fetched() -> None:
    with pytest.raises(UsageError, match=r"refers to .*, which is not in it"):
        mismatch({}, {"$ref": "http://127.0.0.1:9/schema.json"})


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        ("ab", {"pattern": "^a"}, None),
        ("ba", {"pattern": "^a"}, "$: 'ba' does not match '^a'"),
        (5, {"pattern": "^a"}, None),
        ({"x_a": 1, "b": "c"}, {"patternProperties": {"^x_": {"type": "integer"}}}, None),
        ({"x_a": "1"}, {"patternProperties": {"^x_": {"type": "integer"}}}, "$.x_a: '1' is not of type 'integer'"),
        (
            {"x_a": 1, "b": 2, "c": 3},
            {"additionalProperties": False, "patternProperties": {"^x_": True}, "properties": {"b": True}},
            "$: Additional properties are not allowed ('c' was unexpected)",
        ),
        ({"x_a": 1}, {"additionalProperties": False, "patternProperties": {"^x_": True}}, None),
        ({"c": 3}, {"additionalProperties": {"type": "string"}}, "$.c: 3 is not of type 'string'"),
        ({"const": {"$schema": "kept"}}, {"const": {"const": {"$schema": "kept"}}}, None),
    ],
)
def test_keywords_with_patterns_say_what_the_standard_says(
    value: object, schema: dict[str, Any], said: str | None
) -> None:
    assert mismatch(value, schema) == said


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (HOSTILE, {"pattern": ENDLESS}),
        ({HOSTILE: 1}, {"patternProperties": {ENDLESS: True}}),
        ({HOSTILE: 1}, {"additionalProperties": False, "patternProperties": {ENDLESS: True}}),
        ({HOSTILE: 1}, {"propertyNames": {"pattern": ENDLESS}}),
        ([HOSTILE], {"items": {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": ENDLESS}}),
        (
            {"next": {"name": HOSTILE}},
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"next": {"$ref": "#"}, "name": {"pattern": ENDLESS}},
            },
        ),
    ],
)
def test_a_pattern_that_takes_too_long_is_a_fault(
    value: object, schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vivavoce.expressions.SECONDS", 0.1)
    with pytest.raises(GraderFault, match=r"took longer than 0\.1 s"):
        mismatch(value, schema)


def test_patterns_that_only_the_library_could_search_are_refused() -> None:
    schema = {"patternProperties": {"^a": True}, "unevaluatedProperties": False}
    with pytest.raises(UsageError, match="write additionalProperties"):
        mismatch({}, schema)
