from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from vivavoce.models.structured import allows_strict, read_structured

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}},
    "required": ["score"],
    "additionalProperties": False,
}


@given(st.floats(0, 1))
def test_an_object_that_matches_is_read(score: float) -> None:
    assert read_structured(f'{{"score": {score!r}}}', SCHEMA).parsed == {"score": score}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Sure! 0.9", "not JSON"),
        ('{"score": 0.9', "not JSON"),
        ("[1]", "a JSON object is needed, got a list"),
        ('{"score": NaN}', "NaN is not a JSON number"),
        ('{"score": -Infinity}', "-Infinity is not a JSON number"),
        ('{"score": 57}', r"\$\.score: 57 is greater than the maximum of 1"),
        ("{}", "'score' is a required property"),
        ('{"score": true}', "is not of type 'number'"),
        ('{"score": 1, "note": ""}', "'note' was unexpected"),
    ],
)
def test_anything_else_is_refused_with_the_rule_it_breaks(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_structured(text, SCHEMA)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (SCHEMA, True),
        ({"type": "object", "properties": {"a": SCHEMA}, "required": ["a"], "additionalProperties": False}, True),
        ({**SCHEMA, "additionalProperties": True}, False),
        ({**SCHEMA, "required": []}, False),
        ({"type": "array", "items": {"type": "object"}}, False),
        ({"anyOf": [SCHEMA, {"properties": {"a": {"type": "string"}}}]}, False),
        ({**SCHEMA, "properties": {"score": {"type": "string", "minLength": 1}}}, False),
        ({"$defs": {"Part": {"allOf": [SCHEMA]}}, "anyOf": [SCHEMA]}, False),
        ({**SCHEMA, "properties": {"minLength": SCHEMA}, "required": ["minLength"]}, True),
    ],
)
def test_strict_mode_needs_closed_objects_every_property_required_and_known_keywords(
    schema: object, strict: bool
) -> None:
    assert allows_strict(schema) is strict


class _Part(BaseModel):
    name: str
    count: int


class _Whole(BaseModel):
    first: _Part
    second: list[_Part]


def test_a_complaint_names_all_that_does_not_match() -> None:
    with pytest.raises(ValueError, match="Field required") as raised:
        read_structured('{"first": {"name": "a"}, "second": [{"name": 1, "count": 2}]}', _Whole)
    problems = str(raised.value).split("; ")
    assert [problem.partition(":")[0] for problem in problems] == ["$.first.count", "$.second[0].name"]
    with pytest.raises(ValueError, match=r"; and 12 more$"):
        read_structured('{"first": {}, "second": [{}, {}, {}, {}, {}, {}, {}, {}, {}]}', _Whole)
