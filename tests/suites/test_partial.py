"""One check names the mistakes of every layer: shape, graders, metrics, gate, rows, files and functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.check import run_checks
from vivavoce.suites.load import load_for_check

SUITE = """\
name: wrong
target: {kind: function, function: "bot.py:replyy"}
dataset:
  rows:
    - {id: a, input: hi, assert: [{contains: x}]}
    - {id: b, input: hi, expect: [{contians: x}]}
graders:
  a: {kind: function, function: contians}
  b: {kind: model_judge, prompt: "Is it good?"}
  c: {kind: metric, metric: agent_goal_acuracy}
  d: {kind: model_judge, model: "openai:gpt-4.1-mini", prompt: PROMPT}
gate: {kind: simple, metric_key: nobody, opp: gte, value: 0.5}
"""


def places(text: str) -> list[str]:
    """Return the place of each mistake: line, column and path."""
    Path("bot.py").write_text("def reply(message): return message\n")
    Path("suite.yaml").write_text(text)
    with pytest.raises(UsageError) as raised:
        run_checks(load_for_check(Path("suite.yaml")))
    return [
        f"{problem.line}:{problem.column} {problem.message.partition(': ')[0]}" for problem in raised.value.problems
    ]


@pytest.mark.parametrize("prompt", ["rubric.txt", "file://rubric.txt", "./prompts/rubric.jinja", "rubric"])
def test_all_layers_are_checked_in_one_pass(prompt: str) -> None:
    Path("rubric").write_text("Is {{ submission }} polite?")
    assert places(SUITE.replace("PROMPT", prompt)) == [
        "2:1 target",
        "5:26 dataset.rows.0.assert",
        "6:35 dataset.rows.1.expect.0",
        "8:23 graders.a.function",
        "9:3 graders.b",
        "10:21 graders.c.metric",
        "11:56 graders.d.prompt",
        "12:22 gate.metric_key",
        "12:42 gate.opp",
    ]


def test_a_mistake_has_no_others_in_its_train() -> None:
    broken = "name: n\ntarget: bot.py\ndataset: {rows: [{input: hi, expect: {contains: x}}]}\n"
    assert places(f"{broken}gate: {{kind: simple, metric_key: expect, value: 0.5}}\n") == ["2:1 target"]
    shape = "name: n\ntarget: {kind: function, function: 'bot.py:reply'}\ndataset: 3\n"
    assert places(f"{shape}graders: {{a: 3}}\ngate: {{kind: simple, metric_key: a, value: 0.5}}\n") == [
        "3:1 dataset",
        "4:11 graders.a",
    ]


def test_parts_that_do_not_go_together_leave_the_others_to_be_checked() -> None:
    text = "name: n\ntarget: {kind: function, function: 'bot.py:reply'}\ndriver: replay\ndataset: nowhere.jsonl\n"
    assert places(f"{text}graders: {{a: {{kind: function, function: contians}}}}\n")[1:] == [
        "4:1 dataset",
        "5:31 graders.a.function",
    ]


def test_what_is_not_yaml_is_one_mistake() -> None:
    assert len(places("name: [\n")) == 1
