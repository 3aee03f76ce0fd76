from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vivavoce.errors import SuiteFault, UsageError
from vivavoce.metrics.prompts import HERE, Prompt, Wording, read_prompt

ALLOWED = frozenset(("goal", "items", "focus"))
TEXTS = st.text(st.characters(codec=None), max_size=30)


def prompt(text: str, **blocks: str) -> Prompt:
    return Prompt(text, "rules.jinja", ALLOWED, blocks)


@given(TEXTS)
def test_a_value_is_one_quoted_line(value: str) -> None:
    rendered = prompt("Goal: {{ goal }}\nEnd").render({"goal": value})
    goal, end = rendered.splitlines()
    assert end == "End"
    json.loads(goal.removeprefix("Goal: "))
    rendered.encode()


@given(st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3), max_size=3))
def test_so_is_a_list_or_a_mapping(value: dict[str, object]) -> None:
    rendered = prompt("{{ goal }}\n{{ items }}").render({"goal": value, "items": [value]})
    assert [type(json.loads(line)) for line in rendered.splitlines()] == [dict, list]
    rendered.encode()


def test_a_value_is_never_a_template() -> None:
    assert prompt("{{ goal }}").render({"goal": "{{ 7 * 7 }}{% raw %}"}) == '"{{ 7 * 7 }}{% raw %}"'


def test_words_of_ours_and_numbers_are_put_in_as_they_are() -> None:
    text = "{{ goal }} {{ focus }}{% for item in items %} {{ loop.index }}. {{ item }}{% endfor %}"
    values = {"goal": Wording("good or bad"), "focus": 3, "items": ["a", Wording("b")]}
    assert prompt(text).render(values) == 'good or bad 3 1. "a" 2. b'


def test_text_that_a_filter_made_from_our_words_is_quoted_again() -> None:
    assert prompt("{{ items | join }}").render({"items": [Wording("a"), "\n"]}) == '"a\\n"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ gaol }}", "rules.jinja asks for 'gaol'; did you mean 'goal'?"),
        ("{% if answer %}x{% endif %}", "rules.jinja asks for 'answer'"),
        ("{{ goal", "rules.jinja is not a template"),
        ("{% include 'secret' %}{% endif %}", "rules.jinja is not a template"),
    ],
)
def test_a_template_that_cannot_be_used_is_the_users_mistake(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_prompt("judged/goal.jinja", ALLOWED, text, {})
    assert said.replace("rules.jinja", "the prompt") in str(caught.value)


def test_a_block_is_replaced_and_the_rest_stays() -> None:
    text = "Task.\n{% block rules %}\nOld.\n{% endblock %}\nLast."
    assert prompt(text).render({}) == "Task.\nOld.\nLast."
    assert prompt(text, rules="New: {{ goal }}\n").render({"goal": "g"}) == 'Task.\nNew: "g"\nLast.'


def test_a_block_that_does_not_exist_or_asks_for_too_much_is_refused() -> None:
    text = "{% block rules %}{% endblock %}"
    with pytest.raises(UsageError, match="has no block 'rule'; did you mean 'rules'"):
        _ = prompt(text, rule="x").template
    with pytest.raises(UsageError, match="asks for 'secret'"):
        _ = prompt(text, rules="{{ secret }}").template


def test_a_template_cannot_reach_into_python() -> None:
    with pytest.raises(SuiteFault, match="unsafe"):
        prompt("{{ goal.__class__.__mro__ }}").render({"goal": "x"})


def test_a_name_that_nobody_fills_is_an_error() -> None:
    with pytest.raises(SuiteFault, match="'goal' is undefined"):
        prompt("{{ goal }}").render({})


@pytest.mark.parametrize("text", ["Was {goal} reached?", "{% if goal %}{ goal }{% endif %}", '{"a": 1} {goal}'])
def test_a_variable_in_single_braces_is_refused_for_it_would_stay_unfilled(text: str) -> None:
    with pytest.raises(UsageError, match=r"the prompt has \{goal\}, which is never filled; write \{\{ goal \}\}"):
        read_prompt("", ALLOWED, text, {})
    with pytest.raises(UsageError, match=r"which is never filled"):
        _ = prompt("{% block rules %}{% endblock %}", rules=text).template


def test_other_braces_stay_as_they_are() -> None:
    assert prompt('{"goal": 1} {other} {{ goal }}').render({"goal": "g"}) == '{"goal": 1} {other} "g"'


def test_a_prompt_is_read_from_the_package_a_path_or_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("Judge {{ goal }}")
    assert read_prompt("judged/goal.jinja", ALLOWED | _asked("goal"), None, {}).text.startswith("Task:")
    assert read_prompt("judged/goal.jinja", ALLOWED, tmp_path / "mine.jinja", {}).text == "Judge {{ goal }}"
    assert read_prompt("judged/goal.jinja", ALLOWED, "Judge it", {}).text == "Judge it"
    with pytest.raises(UsageError, match=r"the prompt .*none.jinja cannot be read"):
        read_prompt("judged/goal.jinja", ALLOWED, tmp_path / "none.jinja", {})


def _asked(name: str) -> frozenset[str]:
    from jinja2 import Environment, meta

    text = (HERE / "judged" / f"{name}.jinja").read_text()
    return frozenset(meta.find_undeclared_variables(Environment().parse(text)))


def test_the_hash_is_of_the_words_that_are_used() -> None:
    text = "{% block rules %}x{% endblock %}"
    hashes = {prompt(text).hash, prompt(text + " ").hash, prompt(text, rules="y").hash, prompt(text, rules="z").hash}
    assert len(hashes) == 4
    assert prompt(text, rules="y").hash == Prompt(text, "elsewhere", frozenset(), {"rules": "y"}).hash


@pytest.mark.parametrize("text", ["{% include 'goal' %}", "{% import 'x' as x %}", "{% from 'x' import y %}"])
def test_a_template_asks_for_no_other(text: str) -> None:
    with pytest.raises(UsageError, match="is not allowed in a template"):
        _ = prompt(text).template
    with pytest.raises(UsageError, match="is not allowed in a template"):
        _ = prompt("{% block x %}{% endblock %}", x=text).template


def test_a_template_changes_no_value() -> None:
    values = {"goal": {"role": "clerk"}}
    with pytest.raises(UsageError, match="a call of 'update' is not allowed"):
        prompt("{{ goal.update({'role': 'king'}) }}").render(values)
    assert values == {"goal": {"role": "clerk"}}


def test_what_is_not_known_of_a_conversation_is_an_error_and_never_the_word_none() -> None:
    with pytest.raises(SuiteFault, match="a value that this conversation lacks"):
        prompt("{{ goal }}").render({"goal": None})
    assert prompt("{% if goal %}{{ goal }}{% endif %}.").render({"goal": None}) == "."
