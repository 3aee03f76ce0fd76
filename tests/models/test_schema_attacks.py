"""Schemas that try to hang a check: what the library would follow, or would do without end, is refused or counted."""

from __future__ import annotations

from typing import Any

import pytest

from vivavoce.errors import GraderFault, UsageError
from vivavoce.models.json_schema import mismatch, unchecked_formats
from vivavoce.models.schema_check import MAX_STEPS

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
CATASTROPHE = "(a+)+$"
VICTIM = "a" * 40 + "!"
MANY = dict.fromkeys(map(str, range(100_000)))


@pytest.mark.parametrize("holder", ["default", "const", "examples", "title", "x-mine"])
def test_a_reference_to_what_is_no_schema_is_refused(holder: str) -> None:
    part = {"$schema": DRAFT_7, "pattern": CATASTROPHE}
    schema: dict[str, Any] = {"$ref": f"#/{holder}", holder: [part] if holder == "examples" else part}
    if holder == "examples":
        schema["$ref"] += "/0"
    if holder == "title":
        schema["title"] = "a text"
    with pytest.raises(UsageError, match="is not a schema in it"):
        mismatch(VICTIM, schema)


def test_patterns_under_a_default_are_not_reached_by_unevaluated_properties() -> None:
    default: dict[str, Any] = {"patternProperties": {CATASTROPHE: {}}}
    with pytest.raises(UsageError, match="is not a schema in it"):
        mismatch({VICTIM: 1}, {"$ref": "#/default", "unevaluatedProperties": False, "default": default})


@pytest.mark.parametrize("name", ["default", "const", "enum", "examples"])
def test_a_property_with_the_name_of_a_keyword_is_a_schema(name: str) -> None:
    part = {"pattern": CATASTROPHE, "format": "unheard-of"}
    schema = {"properties": {name: part}}
    assert unchecked_formats(schema) == ["unheard-of"]
    assert "does not match" in str(mismatch({name: VICTIM}, schema)), "read by us, with our bounds"


NOWHERE: list[dict[str, Any]] = [
    {"$ref": "#/minimum", "minimum": 0},
    {"$ref": "#/allOf/-1", "allOf": [{}]},
    {"$ref": "#/nowhere"},
    {"$ref": "#nowhere"},
    {"$ref": "http://[::1"},
    {"$id": "http://[::1"},
    {"multipleOf": float("inf")},
    {"$dynamicRef": "#/default", "default": {}},
]


@pytest.mark.parametrize("schema", NOWHERE)
def test_a_reference_or_a_number_that_leads_nowhere_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        mismatch(1, schema)


def test_references_to_schemas_work() -> None:
    schema = {
        "$defs": {"word": {"$anchor": "word", "type": "string"}},
        "definitions": {"old": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/word"}, "b": {"$ref": "#word"}, "c": {"$ref": "#/definitions/old"}},
    }
    assert mismatch({"a": "x", "b": "y", "c": 1}, schema) is None
    for key, value in (("a", 1), ("b", 1), ("c", "x")):
        assert "is not of type" in str(mismatch({key: value}, schema))


COSTLY: list[tuple[dict[str, Any], object]] = [
    ({"allOf": [{"format": "uri"}] * 4_900}, "a:" + "b" * 10**6),
    ({"allOf": [{"uniqueItems": True}] * 4_900}, [[0] * 100_000]),
    ({"allOf": [{"uniqueItems": True}] * 4_900}, ["x" * 3_000_000]),
    ({"allOf": [{"propertyNames": {}}] * 30}, MANY),
    ({"items": {}}, [0] * 250_000),
]


@pytest.mark.parametrize(("schema", "value"), COSTLY)
def test_work_is_counted_before_it_is_done(schema: dict[str, Any], value: object) -> None:
    with pytest.raises(GraderFault, match=f"more than {MAX_STEPS:,} steps"):
        mismatch(value, schema)


EVALUATED: list[tuple[dict[str, Any], object]] = [
    ({"contains": True, "unevaluatedItems": False}, [0] * 100_000),
    ({"allOf": [{"additionalProperties": {}}], "unevaluatedProperties": False}, MANY),
    ({"prefixItems": [True], "contains": True, "unevaluatedItems": False}, [0] * 1_500),
]


@pytest.mark.parametrize(("schema", "value"), EVALUATED)
def test_what_other_keywords_evaluated_is_not_compared_again(schema: dict[str, Any], value: object) -> None:
    assert mismatch(value, schema) is None


def test_a_schema_with_a_long_text_is_refused() -> None:
    with pytest.raises(UsageError, match="characters, at most"):
        mismatch("x", {"const": "x" * 5_000_000})
