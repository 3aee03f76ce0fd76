"""What a request asks for ends soon, however many of it there are."""

from __future__ import annotations

import pytest
from jinja2 import TemplateSyntaxError

from vivavoce.comparing.numbers import MAX_TEXT_CHARS, numbers_in
from vivavoce.comparing.similarity import similarity
from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.expressions import Expression
from vivavoce.models.json_schema import mismatch
from vivavoce.safe_template import MAX_NESTED_LOOPS, SafeEnvironment, TemplateTooLarge
from vivavoce.work_time import limited_work

TREE = '{% for a, b in [(("x", "x"), ("x", "x"))] %}{% for c, d in [((a, a, a), (b, b, b))] %}{% endfor %}{% endfor %}'


@pytest.mark.parametrize(
    "template",
    [
        TREE,
        "{% for a in [x, x] %}{% endfor %}",
        "{{ [[x]]|length }}",
        "{{ {'a': x}.items() }}",
        "{{ (x, x) == (x, x) }}",
        "{{ ([x],) }}",
    ],
)
def test_a_template_cannot_build_lists_of_what_it_is_given(template: str) -> None:
    with pytest.raises(TemplateSyntaxError, match="list, tuple, or mapping"):
        SafeEnvironment().from_string(template)


def test_lists_of_literals_are_there() -> None:
    template = "{% for a, b in [('x', 1), ('y', -2)] %}{{ a }}{{ b }}{% endfor %}{{ 'in' if x in ['a', 'b'] }}"
    assert SafeEnvironment().from_string(template).render(x="b") == "x1y-2in"


@pytest.mark.parametrize(
    "body", ["{% if a in m %}{% endif %}", "{{ 'y' if m == n }}", "{% if m is eq(n) %}{% endif %}", "{{ m[1:]|count }}"]
)
def test_comparisons_searches_and_slices_are_counted(body: str) -> None:
    template = SafeEnvironment().from_string(f"{{% for a in range_of %}}{body}{{% endfor %}}")
    values = {"range_of": list(range(1000)), "m": list(range(100_000)), "n": list(range(100_000))}
    with pytest.raises(TemplateTooLarge, match="steps"):
        template.render(**values)


def test_loops_are_nested_as_deep_as_python_compiles() -> None:
    def nested(depth: int) -> str:
        return "{% for a in x %}" * depth + "{% endfor %}" * depth

    assert SafeEnvironment().from_string(nested(MAX_NESTED_LOOPS)).render(x=[1]) == ""
    with pytest.raises(TemplateSyntaxError, match="loops in loops"):
        SafeEnvironment().from_string(nested(MAX_NESTED_LOOPS + 1))


def test_long_names_are_not_compared() -> None:
    assert did_you_mean("x" * 100_000, ["y" * 100_000]) == f"; known: {'y' * 100_000}"
    assert did_you_mean("goals", ["goal", "z" * 1000]) == "; did you mean 'goal'?"


def test_numbers_are_read_in_texts_of_a_limited_length() -> None:
    assert len(numbers_in("1 " * (MAX_TEXT_CHARS // 2))) > 1
    with pytest.raises(GraderFault, match="numbers are read in"):
        numbers_in("1 " * (MAX_TEXT_CHARS // 2) + "1")


def test_the_work_of_a_request_has_a_limit_for_all_kinds_together() -> None:
    with limited_work(1e-9):
        assert similarity("a tiny bit", "of time is left") < 1
        with pytest.raises(GraderFault, match="this request takes more than"):
            similarity("and none", "for this")
        with pytest.raises(GraderFault, match="this request takes more than"):
            numbers_in("17 and 4 in a text of its own")
        with pytest.raises(GraderFault, match="this request takes more than"):
            mismatch([1, 2], {"type": "array", "items": {"type": "integer"}})
        with pytest.raises(UsageError, match="this request takes more than"):
            Expression("(ab)+c").found_in("x")
    assert similarity("without", "a limit") < 1
