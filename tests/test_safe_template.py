"""Templates of other people: the language they may use, and the bounds of a rendering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError, TemplateSyntaxError

from vivavoce.safe_template import (
    FILTERS,
    MAX_DEPTH,
    MAX_NODES,
    MAX_OUTPUT_CHARS,
    MAX_STEPS,
    MAX_TEMPLATE_CHARS,
    SafeEnvironment,
    TemplateTooLarge,
)

VALUES: Mapping[str, Any] = {
    "name": "Ana",
    "facts": {"order": "A-17", "city": "Rome"},
    "items": ["tea", "milk"],
    "rows": list(range(1_000)),
    "long": "x" * 1_000_000,
}


def render(text: str, **values: Any) -> str:
    return SafeEnvironment().from_string(text).render({**VALUES, **values})


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{ name }}, {{ facts.order }}, {{ facts['city'] }}", "Ana, A-17, Rome"),
        ("{{ items[0] }} {{ items[-1] }} {{ name[:2] }}", "tea milk An"),
        (
            "{% for item in items %}{{ loop.index }}. {{ item }}{% if not loop.last %}, {% endif %}{% endfor %}",
            "1. tea, 2. milk",
        ),
        ("{% for key, value in facts.items() %}{{ key }}={{ value }};{% endfor %}", "order=A-17;city=Rome;"),
        ("{% if items and name == 'Ana' %}yes{% elif rows %}no{% else %}never{% endif %}", "yes"),
        (
            "{{ name | upper }} {{ items | join(', ') }} {{ rows | length }} {{ nothing | default('none') }}",
            "ANA tea, milk 1000 none",
        ),
        ("{{ facts | tojson }}", '{"city": "Rome", "order": "A-17"}'),
        ("{{ 'yes' if 'tea' in items else 'no' }}{{ name is defined and nothing is undefined }}", "yesTrue"),
        ("{% block rules %}kept{% endblock %}", "kept"),
    ],
)
def test_the_language_has_variables_conditions_loops_and_a_few_filters(text: str, result: str) -> None:
    assert render(text) == result


@pytest.mark.parametrize(
    "text",
    [
        "{{ 9 ** (9 ** 9) }}",
        "{{ 9 ** ((name | length) ** (name | length)) }}",
        "{{ 'a' * 10 ** 10 }}",
        "{{ ('a' * 10 ** 10) | length }}",
        "{{ rows * 1000 }}",
        "{{ 1 + 1 }}{{ 2 - 1 }}{{ 4 / 2 }}",
        "{{ 4 // 2 }}",
        "{{ '%0900000000d' % 1 }}",
        "{{ name ~ name }}",
        "{{ -name }}",
        "{{ '%0900000000d' | format(1) }}",
        "{{ name | center(1000000000) }}",
        "{{ name | replace('a', 'aaaaaaaa') }}",
        "{{ name | bounded_loop }}",
        "{{ name.format(1) }}",
        "{{ name.zfill(1000000000) }}",
        "{{ facts.items(1) }}",
        "{{ range(1000000000) }}",
        "{{ lipsum() }}",
        "{{ self.rules() }}",
        "{% set x = 1 %}",
        "{% set x %}{{ long }}{% endset %}",
        "{% macro m() %}{% endmacro %}",
        "{% filter upper %}x{% endfilter %}",
        "{% with x = 1 %}{% endwith %}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% extends name %}",
        "{% for x in rows recursive %}{% endfor %}",
        "{{ name is divisibleby 3 }}",
    ],
)
def test_what_could_cost_without_bound_is_refused_when_it_is_compiled(text: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        SafeEnvironment().from_string(text)
    with pytest.raises(TemplateSyntaxError):
        SafeEnvironment().parse(text)


@pytest.mark.parametrize("expression", ["9 ** (9 ** 9)", "'a' * 10 ** 10", "name.upper()", "range(3)", "name ~ name"])
def test_expressions_are_of_the_same_language(expression: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        SafeEnvironment().evaluate(expression)
    assert SafeEnvironment().evaluate("facts.order")(VALUES) == "A-17"


def test_a_rendering_has_so_many_steps_and_no_more() -> None:
    text = "{% for a in rows %}{% for b in inner %}{% endfor %}{% endfor %}done"
    inner = MAX_STEPS // len(VALUES["rows"]) - 1
    assert render(text, inner=list(range(inner))) == "done"
    with pytest.raises(TemplateTooLarge, match="steps"):
        render(text, inner=list(range(inner + 1)))


def test_a_rendering_has_so_many_characters_and_no_more() -> None:
    count = MAX_OUTPUT_CHARS // len(VALUES["long"])
    text = "{% for a in rows[:count] %}{{ long }}{% endfor %}"
    assert len(render(text, count=count)) == MAX_OUTPUT_CHARS
    with pytest.raises(TemplateTooLarge, match="characters"):
        render(text, count=count + 1)
    with pytest.raises(TemplateTooLarge, match="characters"):
        render("{{ rows | join('" + "x" * 100 + "') }}", rows=[1] * 300_000)


def test_filters_pay_for_what_they_read() -> None:
    with pytest.raises(TemplateTooLarge, match="steps"):
        render("{% for a in rows %}{% if long | upper %}{% endif %}{% endfor %}")


def test_a_template_has_so_many_characters_parts_and_levels_and_no_more() -> None:
    assert render("x" * MAX_TEMPLATE_CHARS) == "x" * MAX_TEMPLATE_CHARS
    with pytest.raises(TemplateSyntaxError, match="characters"):
        render("x" * (MAX_TEMPLATE_CHARS + 1))
    assert render("{{ name }}" * (MAX_NODES - 2)) == "Ana" * (MAX_NODES - 2)  # the template and its output are parts
    with pytest.raises(TemplateSyntaxError, match="parts"):
        render("{{ name }}" * (MAX_NODES - 1))
    assert render("{% if name %}" * (MAX_DEPTH - 2) + "x" + "{% endif %}" * (MAX_DEPTH - 2)) == "x"
    for deep in ("{% if name %}" * MAX_DEPTH + "x" + "{% endif %}" * MAX_DEPTH, "{{ " + "not " * 40_000 + "name }}"):
        with pytest.raises(TemplateSyntaxError, match="levels deep"):
            render(deep)


@pytest.mark.parametrize(
    "text", ["{% for a in name %}{% endfor %}", "{% for a in 5 %}{% endfor %}", "{% for a in no %}{% endfor %}"]
)
def test_a_loop_goes_through_lists_and_mappings_alone(text: str) -> None:
    with pytest.raises(TemplateError):
        render(text)


@given(name=st.sampled_from(sorted(FILTERS)), value=st.one_of(st.text(), st.lists(st.text()), st.integers()))
def test_no_filter_makes_much_more_of_a_value(name: str, value: object) -> None:
    try:
        result = render(f"{{{{ value | {name} }}}}", value=value)
    except (TemplateError, TypeError, ValueError):
        return
    assert len(result) <= 100 + 14 * len(repr(value))


@given(st.text(alphabet="{}%|.()[]'\"x19*+ -~=<>", max_size=60))
def test_any_text_is_rendered_or_refused(text: str) -> None:
    try:
        render(text, x=1)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError):
        return


@pytest.mark.parametrize(
    "text",
    [
        "{{ long | trim(long) }}",
        "{{ long | join(long) }}",
        "{{ rows | join(d=long) }}",
        "{{ rows | join(rows) }}",
        "{{ rows | join(', ', 'name') }}",
        "{{ rows | join(attribute='name') }}",
        "{{ rows | join('" + "x" * 101 + "') }}",
        "{{ rows | tojson(1000000000) }}",
        "{{ rows | tojson(indent=2) }}",
        "{{ rows | first(1) }}",
        "{{ long | int(3) }}",
        "{{ 1e999 | int }}",
    ],
)
def test_an_argument_that_could_multiply_the_work_is_refused(text: str) -> None:
    with pytest.raises(TemplateSyntaxError, match="allowed"):
        render(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in many %}{{ many | tojson }}{% endfor %}",
        "{% for a in many %}{{ 'q' in pairs.values() }}{% endfor %}",
        "{% for a in many %}{{ pairs.items() == pairs.items() }}{% endfor %}",
        "{% for a in many %}{{ many | join }}{% endfor %}",
        "{% for a in many %}" + "{{ '' if a }}" * 1_200 + "{% endfor %}",
        ("{{ pairs.items() | join('" + "x" * 100 + "') }}") * 20,
        "{{ letters | list | tojson }}",
        "{% for a in many %}{{ (digits | string)[:1] }}{% endfor %}",
    ],
)
def test_work_is_counted_before_it_is_done(text: str) -> None:
    values = {"many": [""] * 90_000, "pairs": {str(number): "" for number in range(40_000)}, "letters": "a" * 3_000_000}
    values |= {"digits": 10**1_000}
    with pytest.raises(TemplateTooLarge):
        render(text, **values)


@pytest.mark.parametrize("method", ["items", "keys", "values"])
@pytest.mark.parametrize(
    "block", ["self", "(self if name else 1)", "(self or 1)", "(self | default)", "[self][0]", "super", "(super)"]
)
def test_a_block_cannot_render_a_block(method: str, block: str) -> None:
    with pytest.raises(TemplateSyntaxError, match="is not allowed"):
        render(f"{{% block {method} %}}{{{{ {block}.{method}() }}}}{{% endblock %}}")
    with pytest.raises(TemplateSyntaxError, match="is not allowed"):
        render(f"{{% for a in {block}.{method}() %}}{{% endfor %}}{{% block {method} %}}x{{% endblock %}}")


def test_a_list_of_many_items_is_measured_by_its_length_alone() -> None:
    assert render("{% for a in many %}{{ many | length }}{% endfor %}", many=[""] * 3) == "333"


def test_what_is_in_a_value_is_charged_before_it_is_written() -> None:
    long = "x" * 1_000_000
    with pytest.raises(TemplateTooLarge):
        render("{{ a }}", a=[[long] * 30] * 30)


@pytest.mark.parametrize(
    "text", ["{{ a.format }}", "{{ d.items }}", "{% for x in [1] %}{{ loop.changed }}{% endfor %}"]
)
def test_a_function_is_not_put_into_the_text(text: str) -> None:
    with pytest.raises(TemplateError):
        render(text, a="x", d={"k": 1})
