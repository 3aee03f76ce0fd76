from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.targets.template import address_template, structure_template

KNOWN = ("message", "messages", "sample")


def test_a_text_that_is_one_variable_becomes_its_value() -> None:
    template = structure_template({"m": "{{ messages }}", "n": ["{{sample.n}}", "{{ sample['n'] }}"]}, "body", KNOWN)
    assert template.fill({"messages": [{"role": "user"}], "sample": {"n": 3}}) == {"m": [{"role": "user"}], "n": [3, 3]}


def test_any_other_text_is_rendered_and_other_values_stay() -> None:
    template = structure_template({"a": "Q: {{ message | upper }}?\n", "b": [1, None, True]}, "body", KNOWN)
    assert template.fill({"message": "why"}) == {"a": "Q: WHY?\n", "b": [1, None, True]}


def test_the_variables_are_known() -> None:
    template = structure_template(["{{ message }}", {"x": "{{ sample.id }} and {{ messages[0] }}"}], "body", KNOWN)
    assert template.variables == {"message", "messages", "sample"}


@pytest.mark.parametrize("text", ["{{ 0x" + "f" * 90_000 + " }}", "{% autoescape true %}x{% endautoescape %}"])
def test_a_text_that_is_no_template_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid template") as caught:
        structure_template({"m": text}, "body", KNOWN)
    assert len(str(caught.value)) < 600


@given(st.text())
def test_a_value_is_data_and_never_rendered(said: str) -> None:
    template = structure_template(["{{ message }}", "-{{ message }}-"], "body", KNOWN)
    assert template.fill({"message": said + "{{ 7 * 7 }}"}) == [said + "{{ 7 * 7 }}", f"-{said}{{{{ 7 * 7 }}}}-"]


@pytest.mark.parametrize("text", ["{{ message", "{% if %}", "{{ message | nofilter }}", "{{ }}"])
def test_a_template_that_is_not_valid_is_named_with_its_place(text: str) -> None:
    with pytest.raises(UsageError, match=r"body\.a\.0: .* is not a valid template"):
        structure_template({"a": [text]}, "body", KNOWN)


def test_an_unknown_variable_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match=r"body: no variable 'mesage'; did you mean 'message'\?"):
        structure_template("{{ mesage }}", "body", KNOWN)


@pytest.mark.parametrize("text", ["{{ sample.extra_vars.city }}", "in {{ sample.extra_vars.city }}"])
def test_what_a_sample_lacks_is_the_suites_fault(text: str) -> None:
    template = structure_template({"where": text}, "body", KNOWN)
    with pytest.raises(SuiteFault, match=r"body\.where: .*city") as caught:
        template.fill({"sample": {"extra_vars": {}}})
    assert caught.value.blame == "suite"


@pytest.mark.parametrize("text", ["{{ message.__class__.__mro__ }}", "x{{ message.__class__.__mro__ }}"])
def test_a_template_is_kept_in_its_sandbox(text: str) -> None:
    with pytest.raises(SuiteFault):
        structure_template(text, "body", KNOWN).fill({"message": "hi"})


def test_values_in_an_address_stay_in_their_part() -> None:
    template = address_template("http://bot/chat/{{ message }}?q=1", "url", KNOWN)
    assert template.fill({"message": "../a b?x=1&ü"}) == "http://bot/chat/..%2Fa%20b%3Fx%3D1%26%C3%BC?q=1"
