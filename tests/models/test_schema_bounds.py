"""What a check of a JSON schema may refer to and what it may cost, whatever the schema and the value are."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from vivavoce.errors import GraderFault, UsageError
from vivavoce.models import schema_check
from vivavoce.models.json_schema import mismatch, unchecked_formats
from vivavoce.work_time import limited_work

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
SLOW = "(a+)+$"
HOSTILE = "a" * 64 + "!"
VALUES = ("default", "const", "enum", "examples", "title", "minimum", "required", "$comment", "unknown", "components")


@pytest.mark.parametrize("place", VALUES)
@pytest.mark.parametrize("reference", ["$ref", "$dynamicRef"])
def test_a_reference_leads_only_to_what_was_read_as_a_schema(place: str, reference: str) -> None:
    hidden: dict[str, Any] = {"title": "text", "minimum": 0, "required": ["a"], "$comment": "text"}
    data = hidden.get(place, {"$schema": DRAFT_7, "pattern": SLOW})
    schema = {reference: f"#/{place}", place: [data] if place in ("enum", "examples") else data}
    with pytest.raises(UsageError, match=f"refers to '#/{re.escape(place)}', which is not a schema in it"):
        mismatch(HOSTILE, schema)
    if place in ("enum", "examples"):
        with pytest.raises(UsageError, match="is not a schema in it"):
            mismatch(HOSTILE, {**schema, reference: f"#/{place}/0"})


UNUSABLE: list[dict[str, Any]] = [
    {"$ref": "#/default", "unevaluatedProperties": False, "default": {"patternProperties": {SLOW: {}}}},
    {"$ref": "#q", "default": {"$anchor": "q", "pattern": SLOW}},
    {"$ref": "#/allOf", "allOf": [{}]},
    {"$ref": "#/properties", "properties": {"pattern": True}},
    {"$ref": "#/allOf/-1", "allOf": [{}]},
    {"$ref": "#/allOf/00", "allOf": [{}]},
    {"$ref": "#/allOf/1", "allOf": [{}]},
    {"$ref": "#/a~2"},
    {"$ref": "#/%ZZ"},
    {"$ref": "http://[::1"},
    {"$ref": "other#/allOf/0", "allOf": [{}]},
    {"$id": "http://[::1"},
    {"$schema": "http://example.org/own-draft"},
    {"$schema": DRAFT_7, "items": {"additionalItems": False}},
    {"items": {"$schema": DRAFT_7, "pattern": SLOW}},
    {"$defs": {"a": {"$id": "https://example.org/a"}}},
    {"allOf": [{"$anchor": "a"}, {"$dynamicAnchor": "a"}]},
    {"multipleOf": float("inf")},
    {"minimum": float("nan")},
    {"minimum": 10**5000},
    {"const": {1, 2}},
    {"type": "objekt"},
]


@pytest.mark.parametrize("schema", UNUSABLE)
def test_a_schema_that_cannot_be_used_is_refused_in_one_line(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        mismatch(HOSTILE, schema)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}},
        {"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}, "$schema": DRAFT_7},
        {"$ref": "#/$defs/a~1b~0%25", "$defs": {"a/b~%": {"type": "integer"}}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer"}}},
        {"$dynamicRef": "#here", "$defs": {"a": {"$dynamicAnchor": "here", "type": "integer"}}},
        {
            "$id": "https://example.org/a",
            "$ref": "https://example.org/a#/properties/const",
            "properties": {"const": {"type": "integer"}},
        },
        {"$ref": "#/allOf/0/not", "allOf": [{"not": {"type": "integer"}}, True]},
    ],
)
def test_a_reference_to_a_schema_is_followed(schema: dict[str, Any]) -> None:
    problem = mismatch("x", schema)
    assert problem is not None
    assert "is not of type 'integer'" in problem


def test_names_of_properties_are_not_keywords() -> None:
    schema = {"properties": {"const": {"format": "iri"}, "default": {"pattern": "("}}}
    assert unchecked_formats(schema) == ["iri"]
    with pytest.raises(UsageError, match="is not a regular expression"):
        mismatch({}, schema)


MANY = {str(i): 0 for i in range(100_000)}
FAN = {"b": {"allOf": [{"$ref": "#/$defs/a"}] * 300}}

LINEAR: list[tuple[Any, dict[str, Any]]] = [
    ([0] * 100_000, {"contains": True, "unevaluatedItems": False}),
    (MANY, {"allOf": [{"additionalProperties": {}}], "unevaluatedProperties": False}),
    (MANY, {"additionalProperties": {}}),
    ([0] * 100_000, {"items": {}}),
    (["x" * 3_000_000], {"uniqueItems": True}),
]


@pytest.mark.parametrize(("value", "schema"), LINEAR)
def test_a_large_value_is_checked(value: Any, schema: dict[str, Any]) -> None:
    assert mismatch(value, schema) is None


TOO_MUCH: list[tuple[Any, dict[str, Any]]] = [
    ("a:" + "a" * 1_000_000, {"allOf": [{"format": "uri"}] * 4_900}),
    (":" * 1_000_000, {"anyOf": [{"format": "ipv6"}] * 4_900}),
    ([[0] * 100_000], {"allOf": [{"uniqueItems": True}] * 4_900}),
    (["x" * 3_000_000], {"allOf": [{"uniqueItems": True}] * 4_900}),
    ("x" * 400_000, {"$defs": {"a": {"const": "x" * 400_000}, **FAN}, "allOf": [{"$ref": "#/$defs/b"}] * 300}),
    ("x" * 400_000, {"$defs": {"a": {"enum": ["x" * 400_000]}, **FAN}, "allOf": [{"$ref": "#/$defs/b"}] * 300}),
    ([[0] * 9_000] * 300, {"items": {"allOf": [{"$ref": "#/$defs/a"}] * 300}, "$defs": {"a": {"const": [0] * 9_000}}}),
    (MANY, {"allOf": [{"propertyNames": {}}] * 30}),
    (MANY, {"allOf": [{"additionalProperties": False}] * 4_900}),
    (MANY, {"allOf": [{"additionalProperties": {}}] * 40, "unevaluatedProperties": False}),
    ([0] * 1_000_000, {"items": {}}),
    ([0] * 1_000_000, {"items": True}),
    ([0] * 1_000_000, {"contains": True}),
    ([10**4_000] * 10_000, {"allOf": [{"uniqueItems": True}] * 4_900}),
    ({"k" * 400_000: 1}, {"allOf": [{"$ref": "#/$defs/a"}] * 3_000, "$defs": {"a": {"required": ["k" * 400_000]}}}),
]


@pytest.mark.parametrize(("value", "schema"), TOO_MUCH)
def test_what_a_keyword_reads_is_charged_before_it_reads_it(value: Any, schema: dict[str, Any]) -> None:
    with pytest.raises(GraderFault, match="takes more than 200,000 steps"):
        mismatch(value, schema)


def test_a_check_ends_inside_when_the_time_of_its_request_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_check, "MAX_STEPS", 10**12)
    with limited_work(0.2), pytest.raises(GraderFault, match="this request takes more than"):
        mismatch(MANY, {"allOf": [{"propertyNames": {}}] * 300})


def test_a_message_about_a_large_value_is_short() -> None:
    for value in ("x" * 3_000_000, [0] * 1_000_000, MANY, 10**4_000, {"k" * 1_000_000: 1}):
        problem = mismatch(value, {"type": "null"})
        assert problem is not None
        assert len(problem) <= 301


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 1.0, 1.5]), st.sampled_from(["", "a", "ab"])
)
JSON = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.sampled_from("abc"), part, max_size=3)
)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
COUNTS = st.integers(0, 3)
NAMES = st.lists(st.sampled_from("abc"), unique=True, max_size=3)


def keywords(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return schemas with any keywords of the draft, whose parts are other schemas."""
    parts = st.lists(part, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("abc"), part, max_size=3)
    each: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), parts),
        **dict.fromkeys(("not", "if", "then", "else", "items", "contains", "additionalProperties"), part),
        **dict.fromkeys(("propertyNames", "unevaluatedItems", "unevaluatedProperties"), part),
        **dict.fromkeys(("properties", "dependentSchemas"), named),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "."]), part, max_size=2),
        **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minContains", "maxContains"), COUNTS),
        **dict.fromkeys(("minProperties", "maxProperties"), COUNTS),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.integers(-2, 2)),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "type": TYPES | st.lists(TYPES, unique=True, min_size=1, max_size=3),
        "const": JSON,
        "enum": st.lists(JSON, min_size=1, max_size=3),
        "pattern": st.sampled_from(["^a", "b", "^$"]),
        "required": NAMES,
        "dependentRequired": st.dictionaries(st.sampled_from("abc"), NAMES, max_size=2),
        "uniqueItems": st.booleans(),
    }
    return st.fixed_dictionaries({}, optional=each) | st.sampled_from(sorted(each)).flatmap(
        lambda name: st.fixed_dictionaries({name: each[name]})
    )


LEAVES: st.SearchStrategy[Any] = st.sampled_from([True, False, {}, *({"type": name} for name in ("array", "string"))])
SCHEMAS = st.recursive(LEAVES, keywords, max_leaves=8)


def with_definitions(schema: Any, parts: list[Any]) -> dict[str, Any]:
    """Return a schema that refers to others, which cannot lead back to it."""
    definitions = {f"d{i}": part for i, part in enumerate(parts)}
    return {"allOf": [schema], "$defs": definitions, "anyOf": [{"$ref": f"#/$defs/{name}"} for name in definitions]}


@settings(max_examples=300)
@given(JSON, st.builds(with_definitions, SCHEMAS, st.lists(SCHEMAS, min_size=1, max_size=2)), st.booleans())
def test_a_value_matches_where_the_library_says_so(value: Any, schema: dict[str, Any], is_closed: bool) -> None:
    if is_closed:
        schema = {**schema, "unevaluatedItems": False, "unevaluatedProperties": False}
    library: Any = Draft202012Validator(schema)
    assert (mismatch(value, schema) is None) == library.is_valid(value)


PIECES = st.recursive(
    SCALARS | st.sampled_from(["#", "#/default", "#/allOf/0", "#/$defs/a", "#a", DRAFT_7, SLOW, HOSTILE, "uri"]),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *schema_check.KEYWORDS,
                    "$defs",
                    "definitions",
                    "default",
                    "examples",
                    "$schema",
                    "$id",
                    "$anchor",
                    "a",
                ]
            ),
            part,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=500, deadline=None)
@given(JSON | st.just(HOSTILE), st.dictionaries(st.sampled_from(["$ref", *schema_check.KEYWORDS]), PIECES, max_size=4))
def test_any_schema_gives_a_verdict_or_one_of_our_errors(value: Any, schema: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vivavoce.safe_regex.SECONDS", 0.05)
        try:
            problem = mismatch(value, schema)
        except (UsageError, GraderFault):
            return
    assert problem is None or problem.startswith("$")
