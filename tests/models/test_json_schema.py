from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault, UsageError
from vivavoce.models.json_schema import mismatch, unchecked_formats
from vivavoce.models.schema_texts import FORMATS

ENDLESS = "(a|aa)+$"
HOSTILE = "a" * 60 + "!"


def test_a_schema_that_is_not_valid_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match="the JSON schema is not valid at"):
        mismatch({}, {"type": "objekt"})


def test_a_reference_to_a_web_address_is_not_fetched() -> None:
    with pytest.raises(UsageError, match=r"refers to .*, which is not a schema in it"):
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
        ({HOSTILE: 1}, {"patternProperties": {ENDLESS: True}, "unevaluatedProperties": False}),
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
    monkeypatch.setattr("vivavoce.safe_regex.SECONDS", 0.1)
    with pytest.raises(GraderFault, match=r"took longer than 0\.1 s"):
        mismatch(value, schema)


def test_patterns_evaluate_what_they_match() -> None:
    schema = {"allOf": [{"patternProperties": {"^a": True}}], "unevaluatedProperties": False}
    assert mismatch({"ab": 1}, schema) is None
    assert mismatch({"ab": 1, "b": 2}, schema) == "$: Unevaluated properties are not allowed ('b' was unexpected)"


@pytest.mark.parametrize(
    ("value", "divisor", "fits"),
    [
        (0.3, 0.1, True),
        (19.99, 0.01, True),
        (1e300, 0.1, True),
        (10**40, 0.5, True),
        (0.35, 0.1, False),
        (7, 2.5, False),
        (-4.5, 1.5, True),
        (True, 2, True),
        ("0.35", 0.1, True),
    ],
)
def test_a_multiple_is_counted_in_decimals(value: object, divisor: float, fits: bool) -> None:
    assert (mismatch(value, {"multipleOf": divisor}) is None) is fits


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(0, 6))
def test_a_decimal_times_a_whole_number_is_a_multiple_of_it(factor: int, digits: int, places: int) -> None:
    divisor = Decimal(digits).scaleb(-places)
    product, half = (json.loads(str(number)) for number in (divisor * factor, divisor * factor + divisor / 2))
    assert mismatch(product, {"multipleOf": float(divisor)}) is None
    assert mismatch(half, {"multipleOf": float(divisor)}) is not None


ACCEPTED = {
    "date": ("2024-02-29", "0001-01-01"),
    "time": ("10:24:00Z", "23:59:60z", "08:29:60-15:30", "10:24:00.5+02:00"),
    "date-time": ("2024-02-29T10:24:00Z", "2024-02-29t10:24:00.123-05:30"),
    "email": ("ana@example.org", "a.b+c@mail.example.org", "ana@localhost"),
    "hostname": ("example.org", "a-1.b", "localhost"),
    "ipv4": ("127.0.0.1", "0.0.0.0"),
    "ipv6": ("::1", "2001:db8::ff00:42:8329", "::ffff:10.0.0.1"),
    "uri": ("https://example.org/a?b=%20#c", "mailto:ana@example.org", "urn:isbn:0451450523", "http://[::1]:80/"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"),
}
REFUSED = {
    "date": ("2024-02-30", "2023-02-29", "2024-2-3", "20240203", "2024-W05-1", "2024-02-03 ", "٢٠٢٤-٠٢-٠٣", ""),
    "time": ("10:24", "10:24:00", "24:00:00Z", "10:24:60Z", "10:24:00+24:00", "10:24:00Z\n"),
    "date-time": ("2024-02-30T10:24:00Z", "2024-02-29", "2024-02-29T10:24:00", "2024-02-29T25:00:00Z"),
    "email": ("ana", "ana@", "@example.org", "a@b@c", "a..b@example.org", "ana@-example.org", "a b@example.org"),
    "hostname": ("", "-a.org", "a_b.org", "a..b", "a" * 64 + ".org", "example.org\n"),
    "ipv4": ("256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4/8", "1.2.3.4 "),
    "ipv6": (":::", "2001:db8::ff00::1", "12345::", "fe80::1%eth0"),
    "uri": ("example.org", "/a", "http://a b", "http://a/%zz", "http://[::1", "http://a:port/", "://a"),
    "uuid": ("123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}", "x"),
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in ACCEPTED.items() for text in texts])
def test_a_text_of_a_format_is_accepted(name: str, text: str) -> None:
    assert mismatch({"at": text}, {"properties": {"at": {"format": name}}}) is None


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in REFUSED.items() for text in texts])
def test_a_text_that_is_not_of_its_format_is_refused(name: str, text: str) -> None:
    problem = mismatch({"at": text}, {"properties": {"at": {"format": name}}})
    assert problem is not None
    assert problem.endswith(f"is not a valid {name}")


def test_every_format_is_either_checked_or_named_as_unchecked() -> None:
    assert ACCEPTED.keys() == REFUSED.keys() == FORMATS.keys()
    schema = {
        "format": "iri",
        "properties": {
            "format": {"format": "date"},
            "b": {"anyOf": [{"format": "duration"}, {"const": {"format": "x"}}]},
        },
    }
    assert unchecked_formats(schema) == ["duration", "iri"]
    assert mismatch(5, {"format": "date"}) is None
    assert mismatch("anything", {"format": "iri"}) is None


def doubled(levels: int, **more: Any) -> dict[str, Any]:
    """Return a short schema that asks for 2 ** levels checks of one value."""
    chain = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(levels)}
    return {"$defs": {**chain, f"d{levels}": {}}, "$ref": "#/$defs/d0", **more}


COSTLY: list[tuple[Any, dict[str, Any], str]] = [
    ({"a": 1}, doubled(30), "takes more than 200,000 steps"),
    ({"a": 1}, doubled(30, unevaluatedProperties=False), "takes more than 200,000 steps"),
    ([{}] * 9_000, {"items": {"required": [f"n{i}" for i in range(9_000)]}}, "takes more than 200,000 steps"),
    (["x" * 1_000] * 1_000, {"items": {"anyOf": [{"type": "object"}] * 2_000}}, "takes more than 200,000 steps"),
    ({"a": 1}, {"$ref": "#"}, "follows more than 100 references"),
    ({"a": 1}, {"$ref": "#", "unevaluatedProperties": False}, "follows more than 100 references"),
    ({"a": 1}, {"$dynamicRef": "#"}, "follows more than 100 references"),
]


@pytest.mark.parametrize(("value", "schema", "said"), COSTLY)
def test_a_check_that_costs_too_much_ends_with_a_fault(value: object, schema: dict[str, Any], said: str) -> None:
    with pytest.raises(GraderFault, match=said) as caught:
        mismatch(value, schema)
    assert caught.value.kind == "limit"


def test_names_that_are_not_texts_are_refused_before_the_library_compares_each_with_each() -> None:
    with pytest.raises(UsageError, match="'required' must be a list of names"):
        mismatch({}, {"required": [{"a": i} for i in range(4_000)]})


def test_many_anchors_are_looked_up_once() -> None:
    anchors = {f"d{i}": {"$anchor": f"a{i}", "type": "integer"} for i in range(1_000)}
    assert mismatch([0], {"$defs": anchors, "allOf": [{"items": {"$ref": f"#a{i}"}} for i in range(1_000)]}) is None


def test_many_items_are_compared_by_their_hash() -> None:
    items = [{"a": i} for i in range(20_000)]
    assert mismatch(items, {"uniqueItems": True}) is None
    assert mismatch([*items, {"a": 7.0}], {"uniqueItems": True}) == "$: items 7 and 20000 are the same: {'a': 7.0}"


@pytest.mark.parametrize(
    ("items", "unique"),
    [([1, True], True), ([0, False], True), ([1, 1.0], False), ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False)],
)
def test_items_are_the_same_as_the_standard_says(items: list[object], unique: bool) -> None:
    assert (mismatch(items, {"uniqueItems": True}) is None) is unique
    assert mismatch(items, {"uniqueItems": False}) is None
