from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.metric_names import load_metric
from vivavoce.testing import ScriptedModel

CONVERSATION: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi."},
    {"role": "assistant", "content": "Good day to you.", "retrieval_context": ["a secret"]},
]
POLITE = """\
name: polite
description: Is the assistant polite?
prompt: |
  Is the assistant polite to somebody who wants {{ goal }}?
score:
"""
NUMBER = POLITE + "  {kind: numeric, min: 1, max: 5, threshold: 4}\n"


def write_metric(text: str) -> Path:
    path = Path("polite.yaml")
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("score", "reply", "passed"),
    [
        ("{kind: numeric, min: 1, max: 5, threshold: 4}", {"score": 4.5}, True),
        ("{kind: numeric, max: 100, threshold: 10, direction: lower_is_better}", {"score": 50}, False),
        ("{kind: categorical, categories: [rude, polite], passing: [polite]}", {"label": "polite"}, True),
        ("{kind: binary}", {"verdict": False}, False),
    ],
)
def test_a_file_describes_a_metric_of_any_kind_of_score(score: str, reply: dict[str, Any], passed: bool) -> None:
    model = ScriptedModel([{"reasoning": "So it is.", "evidence": ["Good day"], "confidence": 0.9, **reply}])
    result = load_metric(write_metric(f"{POLITE}  {score}\n"), model).evaluate(CONVERSATION, goal="a {{ name }}")
    assert (result.name, result.score, result.passed) == ("polite", *reply.values(), passed)
    assert 'who wants "a {{ name }}"?\n' in model.requests[0].messages[1].text


def test_settings_scope_and_what_is_shown_are_those_of_the_file() -> None:
    more = "settings: {temperature: 0.3}\nscope: turn\nshown: {retrieved: false}\n"
    reply = {"reasoning": "", "evidence": ["Good day"], "score": 5, "confidence": 1.0}
    model = ScriptedModel([reply, reply])
    load_metric(write_metric(NUMBER + more), model).evaluate([*CONVERSATION, *CONVERSATION], goal="tea")
    assert [request.settings["temperature"] for request in model.requests] == [0.3, 0.3]
    assert "(left out: retrieved texts)" in model.requests[0].messages[1].text
    assert "a secret" not in model.requests[0].messages[1].text


def test_the_prompt_may_stand_in_a_file_beside_it() -> None:
    Path("prompts").mkdir()
    Path("prompts/polite.jinja").write_text("Was it polite?")
    Path("prompts/polite.yaml").write_text("name: polite\nprompt_path: polite.jinja\nscore: {kind: binary}\n")
    metric = load_metric("prompts/polite.yaml")
    assert metric.evaluate(CONVERSATION).state == "skipped"
    assert "Was it polite?" in metric.prompt.blocks["task"]


def test_the_model_of_the_file_judges_unless_another_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    path = write_metric(NUMBER + "model: openai:gpt-4.1-mini\n")
    mine = ScriptedModel([], name="mine")
    for inputs, name in ((None, "openai:gpt-4.1-mini"), (mine, "mine")):
        metric = load_metric(path, inputs)
        assert metric.model is not None
        assert metric.model.name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NUMBER.replace("goal", "gaol"), "polite.yaml:3:1 prompt: the prompt asks for 'gaol'; did you mean 'goal'?"),
        (NUMBER + "promtp: x\n", "polite.yaml:7:1 promtp: unknown key; did you mean 'prompt'?"),
        (NUMBER.replace("max:", "mxa:"), "mxa: unknown key; did you mean 'max'?"),
        (NUMBER.replace("numeric", "stars"), "score.kind: no kind 'stars'; known: binary, categorical, numeric"),
        (NUMBER.replace("5", "five"), "score.max: needs a number, got 'five'"),
        (NUMBER.replace("5", "0"), "score: min must be below max; got 1 and 0"),
        (NUMBER + "shown: {tool: false}\n", "shown.tool: unknown key; did you mean 'tools'?"),
        (NUMBER + "scope: turns\n", "scope: needs one of conversation, window, turn, got 'turns'; did you mean turn?"),
        (NUMBER + "settings: {api_key: sk-1}\n", "settings: api_key is an API key"),
        (NUMBER + "model: nobody:knows\n", "polite.yaml:7:1 model: "),
        (NUMBER + "prompt_path: x.jinja\n", "needs exactly one of prompt and prompt_path"),
        ("name: polite\nscore: {kind: binary}\n", "needs exactly one of prompt and prompt_path"),
        ("name: x\nprompt_path: gone.jinja\nscore: {kind: binary}\n", "polite.yaml:2:1 prompt_path: the prompt gone.j"),
        ("name: polite\nprompt: x\n", "the key 'score' is missing"),
        ("- polite\n", "must be a mapping with keys such as name, prompt and score"),
        ("name: [\n", "is not YAML"),
    ],
)
def test_each_mistake_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_metric(write_metric(text))
    assert message in str(caught.value)
    assert str(caught.value).startswith("polite.yaml:")
    assert "sk-1" not in str(caught.value)


def test_a_file_that_is_missing_or_no_yaml_is_told() -> None:
    with pytest.raises(UsageError, match=r"gone\.yaml: cannot be read"):
        load_metric("gone.yaml")
    with pytest.raises(UsageError, match=r"is a Python file, not a metric; a metric is a YAML file$"):
        load_metric("polite.py")
