"""What a request asks for ends soon, however many of it there are."""

from __future__ import annotations

import time

import pytest
from jinja2 import TemplateSyntaxError

from vivavoce import work_time
from vivavoce.comparing.numbers import MAX_TEXT_CHARS, numbers_in
from vivavoce.comparing.similarity import similarity
from vivavoce.errors import GraderFault, UsageError, did_you_mean
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evaluation import evaluate_input
from vivavoce.metrics.measuring import ExactMetric, Measured, Part
from vivavoce.metrics.metric import evaluation_input
from vivavoce.models.json_schema import mismatch
from vivavoce.safe_regex import Expression
from vivavoce.safe_template import MAX_NESTED_LOOPS, SafeEnvironment, TemplateTooLarge
from vivavoce.work_time import conversation_work, interrupted_work, limited_work, unlimited_work

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
    with pytest.raises(TemplateSyntaxError, match="nested loops"):
        SafeEnvironment().from_string(nested(MAX_NESTED_LOOPS + 1))


def test_long_names_are_not_compared() -> None:
    assert did_you_mean("x" * 100_000, ["y" * 100_000]) == f"; known: {'y' * 100_000}"
    assert did_you_mean("goals", ["goal", "z" * 1000]) == "; did you mean 'goal'?"


def test_numbers_are_read_in_texts_of_a_limited_length() -> None:
    assert len(numbers_in("1 " * (MAX_TEXT_CHARS // 2))) > 1
    with pytest.raises(GraderFault, match="numbers can be read in"):
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


class EndlessMetric(ExactMetric):
    """Measures without an end, and never checks its time."""

    def __init__(self) -> None:
        super().__init__(MetricConfig(name="endless", description="Does it end?"))

    def measure(self, part: Part) -> Measured:
        """Work without an end."""
        while True:
            sum(range(1000))


async def test_work_that_never_checks_its_time_is_an_error_of_one_metric() -> None:
    talk = evaluation_input([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    with interrupted_work(), limited_work(0.3):
        report = await evaluate_input(talk, ["turn_count", EndlessMetric()])
    assert report["endless"].state == "error"
    assert "this request takes more than" in (report["endless"].reason or "")
    assert report["turn_count"].state == "scored"


def test_only_limited_work_is_interrupted() -> None:
    began = time.thread_time()
    with interrupted_work(), limited_work(0.3), unlimited_work():
        while time.thread_time() < began + 1:
            sum(range(1000))


def test_each_conversation_of_a_process_that_interrupts_work_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_time, "CONVERSATION_SECONDS", 0.3)
    with conversation_work():
        mismatch([1], {"type": "array"})
    with interrupted_work():
        for _ in range(2):
            with pytest.raises(GraderFault, match="this conversation takes more than"):
                work_without_end()


def work_without_end() -> None:
    with conversation_work():
        while True:
            sum(range(1000))
