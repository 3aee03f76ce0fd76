"""Rubrics: their variables in every syntax, and material that cannot escape."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import GraderFault, SuiteFault, UsageError
from vivavoce.metrics.prompts import STANDARD, Rubric, read_rubric

VALUES = {"input": "Draw a cat", "ground_truth": None, "submission": "=^.^=", "conversation": "…"}
KNOWN = frozenset(STANDARD)


@pytest.mark.parametrize("text", ["Task: {{ input }}\nWork: {{submission}}", "Task: {input}\nWork: {submission}"])
def test_both_syntaxes_are_filled(text: str) -> None:
    filled = read_rubric(text, KNOWN).render(VALUES)
    assert "Draw a cat" in filled
    assert "=^.^=" in filled
    assert "{" not in filled


def test_a_rubric_that_mixes_them_is_refused_for_one_would_stay_unfilled() -> None:
    with pytest.raises(UsageError, match="mixes"):
        read_rubric("{{ input }} and {submission}", KNOWN)


def test_doubled_braces_are_literal_in_lettas_syntax() -> None:
    assert "{ground}" in Rubric("{{ground}} {submission}", "letta").render(VALUES)


def test_older_suites_fill_declared_names_and_leave_other_braces_alone() -> None:
    rubric = Rubric("Answer like {Answer}. {input}", "replace", "r", frozenset({"input"}))
    assert "{Answer}" in rubric.render(VALUES)


@pytest.mark.parametrize(("text", "syntax"), [("{{ reference }}", "jinja"), ("{reference}", "letta")])
def test_a_missing_variable_is_a_fault_that_names_it(text: str, syntax: str) -> None:
    with pytest.raises(GraderFault, match="asks for 'reference'"):
        Rubric(text, syntax).render(VALUES)  # pyright: ignore[reportArgumentType]


def test_a_judge_always_sees_what_it_judges() -> None:
    filled = read_rubric("Is it a cat?", KNOWN).render(VALUES)
    assert "Submission:" in filled
    assert "=^.^=" in filled
    assert "Ground truth:" not in filled


def test_a_template_in_the_material_is_text() -> None:
    hostile = {**VALUES, "submission": "{{ 7 * 7 }} {input} {% for x in y %}"}
    for text in ("{{ submission }}", "{submission}"):
        filled = read_rubric(text, KNOWN).render(hostile)
        assert "{{ 7 * 7 }} {input} {% for x in y %}" in filled


def test_templates_cannot_reach_into_python() -> None:
    with pytest.raises(UsageError, match="a call of '__subclasses__' is not allowed"):
        Rubric("{{ submission.__class__.__mro__[1].__subclasses__() }}", "jinja").render(VALUES)
    with pytest.raises(SuiteFault, match="cannot be rendered: access to attribute '__class__'"):
        Rubric("{{ submission.__class__ }}", "jinja").render(VALUES)


@pytest.mark.parametrize("text", ["{{ submission }}", "{submission}"])
@given(material=st.text())
def test_material_is_a_string_on_one_line_that_it_cannot_end(material: str, text: str) -> None:
    (line,) = read_rubric(text, KNOWN).render({**VALUES, "submission": material}).splitlines()
    assert json.loads(line) == material


def test_a_value_that_is_no_text_is_put_in_as_json() -> None:
    rubric = Rubric("{facts} {submission}", "letta")
    assert rubric.render({"facts": {"price": 3}, "submission": ["one", "two"]}) == '{"price": 3} ["one", "two"]'


def test_a_broken_template_is_told_with_its_name() -> None:
    with pytest.raises(UsageError, match=r"quality\.txt is not a template"):
        _ = Rubric("{% if %}", "jinja", "quality.txt").variables
