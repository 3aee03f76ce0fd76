"""A schema of a test demands something, and no keyword in it is misspelt; one that describes may be loose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce import UsageError, evaluate
from vivavoce.grading.expected import read_expect
from vivavoce.grading.functions import read_options
from vivavoce.grading.graders import json_schema
from vivavoce.models.json_schema import check_schema, check_test_schema, ignored_keywords
from vivavoce.models.schema_check import KEYWORDS
from vivavoce.suites.check import run_checks
from vivavoce.suites.load import load_suite

TEXT: dict[str, Any] = {"type": "string"}

MISSPELT: list[tuple[dict[str, Any], str]] = [
    ({"requird": ["a"], "type": "object"}, "required"),
    ({"type": "object", "propertis": {"a": TEXT}}, "properties"),
    ({"type": "object", "properties": {"a": {"type": "number", "maximun": 5}}}, "maximum"),
    ({"type": "array", "items": {"anyOf": [{"type": "string", "patern": "x"}]}}, "pattern"),
    ({"$defs": {"a": {"type": "string", "max_length": 3}}, "$ref": "#/$defs/a"}, "maxLength"),
    ({"type": "object", "patternProperties": {"^a": {"type": "string", "enun": ["x"]}}}, "enum"),
    ({"type": "object", "aditionalProperties": False}, "additionalProperties"),
    ({"Type": "object"}, "type"),
    ({"type": "number", "min": 0}, "minimum"),
    ({"type": "string", "regex": "a"}, "pattern"),
    ({"type": "array", "additionalItems": False}, "items"),
    ({"type": "object", "dependencies": {"a": ["b"]}}, "dependentRequired"),
]
LOOSE: list[dict[str, Any]] = [
    {},
    {"title": "x"},
    {"description": "an order", "examples": [{"type": "string"}]},
    {"required": []},
    {"properties": {}},
    {"properties": {"a": {}, "b": True}},
    {"items": {}},
    {"minLength": 0},
    {"uniqueItems": False},
    {"additionalProperties": True},
    {"format": "order-number"},
    {"$defs": {"a": TEXT}},
    {"$defs": {"a": {}}, "$ref": "#/$defs/a"},
    {"allOf": [{}, {"title": "x"}]},
    {"anyOf": [TEXT, {}]},
    {"if": TEXT},
    {"type": ["string", "number", "boolean", "null", "array", "object"]},
]
DEMANDING: list[dict[str, Any]] = [
    {"type": "object", "properties": {"maximun": TEXT, "requird": {}}},
    {"const": {"maximun": 1}},
    {"enum": [{"requird": 1}]},
    {"type": "string", "default": {"propertis": 1}, "examples": [{"typ": 1}]},
    {"type": "object", "x-unit": "kg", "X-Order": 1},
    {"type": "object", "required": ["a"]},
    {"not": {}},
    {"type": "object", "additionalProperties": False},
    {"$defs": {"patern": TEXT}, "$ref": "#/$defs/patern"},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://a.example/s", "type": "object"},
    {"type": "object", "nullable": True, "deprecated": False, "readOnly": True, "$comment": "x"},
]


@pytest.mark.parametrize(("schema", "meant"), MISSPELT)
def test_a_misspelt_keyword_is_named_with_the_right_one(schema: dict[str, Any], meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{meant}'"):
        check_test_schema(schema)


@pytest.mark.parametrize("schema", LOOSE)
def test_a_schema_that_everything_fits_is_no_test(schema: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="accepts every value"):
        check_test_schema(schema)
    check_schema(schema)


@pytest.mark.parametrize("schema", DEMANDING)
def test_names_and_values_in_a_schema_are_not_keywords(schema: dict[str, Any]) -> None:
    check_test_schema(schema)
    assert ignored_keywords(schema) == []


@pytest.mark.parametrize("schema", [MISSPELT[0][0], MISSPELT[2][0], LOOSE[1], LOOSE[3]])
def test_every_reader_of_a_test_refuses_it(schema: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_expect({"json_schema": schema})
    with pytest.raises(UsageError):
        read_options(json_schema, {"schema": schema})
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": '{"a": 1}'}]
    with pytest.raises(UsageError):
        evaluate([{"messages": talk}], [{"metric": "json_schema", "config": {"schema": schema}}], store=tmp_path / "s")
    run = evaluate([{"messages": talk, "ground_truth": schema}], "json_schema", store=tmp_path / "kept.db")
    assert [outcome.scores["json_schema"].state for outcome in run.outcomes()] == ["error"]


def test_an_unknown_keyword_that_is_near_none_is_listed_as_ignored(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "widget": "area"}}}
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{}"}]
    rows = [{"id": "a", "messages": talk, "expect": {"json_schema": {"type": "object", "colour": "red"}}}]
    suite = {"name": "s", "driver": "replay", "dataset": {"rows": rows}}
    graders = {"json": {"kind": "function", "function": "json_schema", "config": {"schema": schema}}}
    (tmp_path / "suite.yaml").write_text(json.dumps({**suite, "graders": graders}))
    notes = run_checks(load_suite(tmp_path / "suite.yaml")).prepared.suite.notes
    assert "JSON schemas: unknown keywords are ignored: 'colour', 'widget'" in notes


@given(st.sampled_from(sorted(name for name in KEYWORDS if len(name) > 4)), st.data())
def test_a_keyword_without_one_of_its_letters_is_never_ignored(keyword: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(keyword) - 1))
    with pytest.raises(UsageError):
        check_test_schema({"type": "object", keyword[:place] + keyword[place + 1 :]: {}})
