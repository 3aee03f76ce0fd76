"""An answer is read strictly, or else as small models write it; nothing with two readings is read."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from vivavoce.comparing.json_values import RepeatedKey
from vivavoce.models.answers import check_answer, lacks_keys, read_answer
from vivavoce.models.structured import StructuredAnswer

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
FRAMES = st.text(st.characters(exclude_characters="{}\"'“‘«„`", exclude_categories=["Cs"]), max_size=40)


class Verdict(BaseModel):
    level: Literal["not_met", "partly_met", "Met"]
    met: bool
    sure: float = Field(ge=0, le=1)
    rule: int | None = None
    quotes: list[str]
    more: dict[str, Any] = Field(default_factory=dict[str, Any])


CLEAN: dict[str, Any] = {"level": "Met", "met": True, "sure": 0.5, "rule": 2, "quotes": ["a"], "more": {}}


@given(FRAMES, st.floats(0, 1), FRAMES)
def test_one_object_is_found_whatever_stands_around_it(before: str, score: float, after: str) -> None:
    assert read_answer(f'{before}{{"score": {score!r}}}{after}', SCHEMA).parsed == {"score": score}


@pytest.mark.parametrize("mark", ['"', "'", "“", "‘", "«", "„", "`"])
@pytest.mark.parametrize("after", ["", " I refuse.", "\n```"])
def test_an_object_that_the_text_quotes_is_not_the_answer(mark: str, after: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        read_answer(f'The user wrote {mark}{{"score": 1}}{mark}{after}', SCHEMA)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"score": 1}', ()),
        ('```json\n{"score": 1}\n```', ("fenced",)),
        ('Here it is:\n\n```\n{"score": 1}```\nHope it helps.', ("fenced", "prose")),
        ('<think>Perhaps {"score": 0}?</think>\n{"score": 1}', ("thoughts",)),
        ('Let me see. It is good.</think>\n{"score": 1}', ("thoughts",)),
        ('{"score": 1}\n\nThat is {"score": 1}.', ("prose", "repeated")),
        ('"{\\"score\\": 1}"', ("quoted",)),
        ("{'score': 1,}", ("spelling",)),
        ('{"name": "reply", "arguments": "{\\"score\\": \\"1\\"}"}', ("call", "types")),
        ('[{"Score": 1}]', ("prose", "keys")),
    ],
)
def test_what_was_cut_off_or_spelled_otherwise_is_noted(text: str, read: tuple[str, ...]) -> None:
    assert read_answer(text, SCHEMA) == StructuredAnswer({"score": 1}, read)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0} or {"score": 1}',
        '{"verdict": {"score": 1}',
        "no object",
        "} nothing {",
        '<think>{"score": 0}',
        '{"score": 1}}',
        '{"score": 1}, "score": 0',
        "{'score': 1, 'score': 0}",
        '{"score": 1 // of 5, or "score": 2\n,}',
        '<think>"</think>{"score": 0}"</think>{"score": 1}',
        '{"reasoning": "</think>{\'score\': 1}",}',
        "{" * 100_000,
        '{"score":' * 100_000 + "1}",
    ],
)
def test_none_two_or_a_part_of_an_object_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"not JSON|a JSON object is needed|'score' is a required|occurs twice"):
        read_answer(text, SCHEMA)


@pytest.mark.parametrize(
    "frame", ["@", "Here it is:\n```json\n@\n```", "<think>So.</think>@", "@\n@", "{'x': 1, 'in': [@]}"]
)
@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0, "score": 1}',
        '{"score": 1, "score": 1}',
        '{"score": 0, "in": [{"a": 1, "a": 2}]}',
        '{"score": 0, "\\u0073core": 1}',
        '{"note": {"b": "\\ud800", "b": ""}, "score": 0}',
    ],
)
def test_a_key_that_occurs_twice_anywhere_is_named_and_the_last_value_never_wins(frame: str, text: str) -> None:
    with pytest.raises(RepeatedKey, match="occurs twice in one object"):
        read_answer(frame.replace("@", text), {})
    assert not lacks_keys(frame.replace("@", text), SCHEMA)


@pytest.mark.parametrize("closed", [{}, {"additionalProperties": False}])
@pytest.mark.parametrize("key", ["Score", "SCORE", "s_core", " score"])
def test_two_spellings_of_one_property_are_a_repeated_key(key: str, closed: dict[str, Any]) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"rows": {"items": {"properties": {"score": {}}, **closed}}},
    }
    answer = {"rows": [{"score": 1}, {key: 0, "score": 1}]}
    for read in (lambda: read_answer(json.dumps(answer), schema), lambda: check_answer(answer, schema)):
        with pytest.raises(RepeatedKey, match=re.escape(key)):
            read()


@pytest.mark.parametrize(
    ("given", "meant", "read"),
    [
        ({"level": "NOT MET"}, {"level": "not_met"}, "values"),
        ({"level": "Partly-Met"}, {"level": "partly_met"}, "values"),
        ({"met": "Yes"}, {"met": True}, "types"),
        ({"met": "false"}, {"met": False}, "types"),
        ({"sure": "0.8"}, {"sure": 0.8}, "types"),
        ({"rule": "3"}, {"rule": 3}, "types"),
        ({"quotes": '["b"]'}, {"quotes": ["b"]}, "types"),
        ({"more": "{'a': 1}"}, {"more": {"a": 1}}, "types"),
    ],
)
def test_a_value_has_the_spelling_and_the_type_of_the_schema(
    given: dict[str, Any], meant: dict[str, Any], read: str
) -> None:
    assert read_answer(json.dumps({**CLEAN, **given}), Verdict) == StructuredAnswer({**CLEAN, **meant}, (read,))


@pytest.mark.parametrize(
    "given",
    [
        {"level": "mostly met"},
        {"level": "met."},
        {"level": ""},
        {"level": ["Met"]},
        {"met": 1},
        {"met": "maybe"},
        {"met": "y"},
        {"sure": "80%"},
        {"sure": "0,8"},
        {"sure": "4/5"},
        {"sure": "8"},
        {"sure": "high"},
        {"rule": "2.5"},
        {"rule": "second"},
        {"quotes": "a"},
        {"quotes": None},
        {"quotes": {"a": 1}},
        {"more": "[]"},
    ],
)
def test_a_value_with_no_certain_meaning_is_an_error(given: dict[str, Any]) -> None:
    (key,) = given
    with pytest.raises(ValueError, match=rf"^\$\.{key}"):
        read_answer(json.dumps({**CLEAN, **given}), Verdict)


@pytest.mark.parametrize(
    ("listed", "written", "meant"),
    [(["a_b", "ab"], "AB", None), (["a_b", "ab"], "ab", "ab"), (["a b", "c"], "A-B", "a b"), ([1, 2], "2", None)],
)
def test_a_listed_value_is_meant_only_where_no_other_is_like_it(
    listed: list[Any], written: str, meant: str | None
) -> None:
    schema = {"type": "object", "properties": {"x": {"enum": listed}}}
    if meant is None:
        with pytest.raises(ValueError, match="is not one of"):
            read_answer(json.dumps({"x": written}), schema)
    else:
        assert read_answer(json.dumps({"x": written}), schema).parsed == {"x": meant}


def test_a_string_may_go_over_two_lines() -> None:
    schema = {"type": "object", "properties": {"why": {"type": "string"}}}
    assert read_answer('{"why": "It was\n\tdone."}', schema) == StructuredAnswer(
        {"why": "It was\n\tdone."}, ("spelling",)
    )


def test_two_keys_for_one_property_are_an_error() -> None:
    with pytest.raises(ValueError, match="the key 'Score' occurs twice"):
        read_answer('{"Score": 1, "SCORE": 0}', SCHEMA)


def test_a_key_that_an_open_schema_does_not_need_stays() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number"}, "note": {"type": "string"}}}
    assert check_answer({"score": 1, "Note": "x"}, schema).parsed == {"score": 1, "Note": "x"}


def test_half_a_pair_in_a_sloppy_answer_becomes_a_replacement_character() -> None:
    schema = {"type": "object", "properties": {"why": {"type": "string"}}}
    found = read_answer("{'why': '\\ud83d half, \\ud83c\\udf93 whole'}", schema).parsed
    assert found == {"why": "\ufffd half, \U0001f393 whole"}


def test_a_record_says_all_that_was_read_otherwise() -> None:
    assert StructuredAnswer({}).noted({"mode": "batch"}) == {"mode": "batch"}
    assert StructuredAnswer({}, ("keys",)).noted({"read": "fenced"}) == {"read": "fenced, keys"}


@pytest.mark.parametrize(
    ("word", "meant"),
    [("Ja", "yes"), ("oui", "yes"), ("sí", "yes"), ("SI", "yes"), ("nein", "no"), ("Non", "no"), ("No", "no")],
)
def test_yes_and_no_are_read_in_other_languages_where_they_are_what_is_asked_for(word: str, meant: str) -> None:
    schema = {
        "type": "object",
        "properties": {"given": {"enum": ["yes", "no"]}, "met": {"type": "boolean"}, "name": {"enum": ["ja", "b"]}},
    }
    answer = {"given": word, "met": word, "name": "ja"}
    assert check_answer(answer, schema).parsed == {"given": meant, "met": meant == "yes", "name": "ja"}
