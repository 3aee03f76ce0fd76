"""What validation finds is told in the words of a suite, with the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.load import load_suite

TARGET = "target: {kind: function, function: 'bot.py:answer'}\n"
GRADERS = "graders:\n  right: {kind: tool, function: contains}\n"
HEAD = "name: capitals\ndataset: d.jsonl\n"


def said_of(text: str) -> str:
    path = Path("suite.yaml")
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_suite(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("target: bot.py:reply\n", "target: needs a mapping, such as {kind: function, function: bot.py:reply}"),
        ("target: [a]\n", "target: needs a mapping, such as {kind: function, function: bot.py:reply}"),
        (
            "target: {kind: openai, base_url: 'http://localhost', model_handles: small}\n",
            "target.model_handles: needs a list, got 'small'; write [x] for a list of one",
        ),
        ("target: {kind: letta, agent_id: a, api_key: 12345}\n", "target.api_key: needs a text; put it in quotes"),
        (
            "target: {kind: http, url: 'http://h', headers: {Authorization: 12345}}\n",
            "target.headers.Authorization: needs a text; put it in quotes",
        ),
        (
            "target: {kind: function, function: 'a.py:f', timeout: 0}\n",
            "target.timeout: should be greater than 0, got 0",
        ),
    ],
)
def test_a_mistake_in_a_target(target: str, text: str) -> None:
    message = said_of(HEAD + target + GRADERS)
    assert message.startswith("suite.yaml:3:")
    assert message.endswith(text)


@pytest.mark.parametrize(
    ("graders", "text"),
    [
        ("  right: contains\n", "graders.right: needs a mapping, such as {kind: function, function: contains}"),
        (
            "  - contains\n",
            "needs a mapping of names to graders, such as {right: {kind: function, function: contains}}",
        ),
        ("  {}\n", "graders: is empty; it needs at least one"),
        (
            "  right: {kind: tool, function: contains, scope: trun}\n",
            "needs one of turn, conversation, got 'trun'; did you mean turn?",
        ),
    ],
)
def test_a_mistake_in_the_graders(graders: str, text: str) -> None:
    assert said_of(f"{HEAD}{TARGET}graders:\n{graders}").endswith(text)


@pytest.mark.parametrize(
    ("rest", "text"),
    [
        ("trials: two\n", "trials: needs a whole number, got 'two'"),
        ("max_samples: 1.5\n", "max_samples: needs a whole number, got 1.5"),
        ("description: yes and no\noutput: true\n", "output: needs a text, got true; put it in quotes"),
        ("sample_tags: refunds\n", "sample_tags: needs a list, got 'refunds'; write [x] for a list of one"),
        ("gate: 0.9\n", "gate: needs a mapping, such as {kind: simple, metric_key: NAME, op: gte, value: 0.9}"),
    ],
)
def test_a_mistake_at_the_top(rest: str, text: str) -> None:
    assert said_of(HEAD + TARGET + GRADERS + rest).endswith(text)


def test_an_empty_name_is_told() -> None:
    assert said_of(f"name: ''\ndataset: d.jsonl\n{TARGET}{GRADERS}") == "suite.yaml:1:1 name: is empty"


def gate(text: str) -> str:
    return said_of(f"{HEAD}{TARGET}{GRADERS}gate: {{kind: simple, metric_key: right, {text}}}\n").partition("gate.")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "value: '95%'",
            "value: needs a number, got '95%'; write 95 where a percentage is meant (aggregation: accuracy), else 0.95",
        ),
        ("op: '>=', value: 0.5", "op: needs one of gt, gte, lt, lte, eq, got '>='; did you mean gte?"),
        ("op: '<', value: 0.5", "op: needs one of gt, gte, lt, lte, eq, got '<'; did you mean lt?"),
        ("op: gtee, value: 0.5", "op: needs one of gt, gte, lt, lte, eq, got 'gtee'; did you mean gte?"),
        ("value: 95", "value: avg_score is from 0 to 1; did you mean 0.95, or aggregation: accuracy?"),
        ("aggregation: p95, value: 80", "value: p95 is from 0 to 1; did you mean 0.8, or aggregation: accuracy?"),
        ("value: -1", "value: avg_score is from 0 to 1, got -1"),
        ("aggregation: min, value: .nan", "value: min is from 0 to 1, got nan"),
        ("aggregation: accuracy, value: 110", "value: accuracy is a percentage, from 0 to 100, got 110"),
        (
            "aggregation: accuracy, value: 0.9",
            "value: accuracy is a percentage, from 0 to 100: 0.9 is 0.9 %; did you mean 90?",
        ),
        (
            "aggregation: accuracy, op: gt, value: 1",
            "value: accuracy is a percentage, from 0 to 100: 1 is 1 %; did you mean 100?",
        ),
        ("op: gt, value: 1", "value: avg_score is from 0 to 1, never above 1; write op: gte"),
        ("op: lt, value: 0", "value: avg_score is from 0 to 1, never below 0; write op: lte"),
        (
            "aggregation: accuracy, op: gt, value: 100",
            "value: accuracy is a percentage, from 0 to 100, never above 100; write op: gte",
        ),
        (
            "aggregation: accuracy, value: 90, pass_threshold: 80",
            "pass_threshold: should be less than or equal to 1, got 80",
        ),
    ],
)
def test_a_gate_that_cannot_decide_is_refused(text: str, message: str) -> None:
    assert gate(text) == message


@pytest.mark.parametrize(("text", "name"), [("pass_threshold: 0.9", "pass_threshold"), ("pass_op: lt", "pass_op")])
def test_what_counts_for_accuracy_is_not_for_another_gate(text: str, name: str) -> None:
    simple = f"gate: {{kind: simple, metric_key: right, value: 0.5, {text}}}\n"
    assert f"{name} says which scores count as passing" in said_of(HEAD + TARGET + GRADERS + simple)


@pytest.mark.parametrize("text", ["value: 95", "op: gt, value: 1"])
def test_the_other_gates_are_checked_alike(text: str) -> None:
    weighted = f"gate: {{kind: weighted_average, weights: {{right: 1}}, {text}}}\n"
    nested = f"gate: {{kind: logical, operator: and, conditions: [{{metric_key: right, {text}}}]}}\n"
    assert "gate.value: avg_score is from 0 to 1" in said_of(HEAD + TARGET + GRADERS + weighted)
    assert "gate.conditions.0.value: avg_score is from 0 to 1" in said_of(HEAD + TARGET + GRADERS + nested)


@pytest.mark.parametrize(
    "text",
    [
        "value: 0",
        "value: 0, min_scored: 0.5",
        "value: 1",
        "op: eq, value: 1",
        "op: lte, value: 0",
        "aggregation: accuracy, op: lte, value: 0.9",
    ],
)
def test_what_a_gate_can_decide_is_allowed(text: str) -> None:
    Path("suite.yaml").write_text(f"{HEAD}{TARGET}{GRADERS}gate: {{kind: simple, metric_key: right, {text}}}\n")
    assert load_suite(Path("suite.yaml")).spec.gate is not None


@pytest.mark.parametrize(
    "target",
    [
        "{kind: http, url: 'http://me:s3cret@host/x', body: '{{ message }}'}",
        "{kind: openai, base_url: 'HTTPS://me:s3cret@host/v1', model_handles: [a]}",
        "{kind: letta, agent_id: a, base_url: 'http://s3cret@host'}",
        "{kind: letta_code, base_url: 'http://me:s3cret@host'}",
        "http://me:s3cret@host/v1#m",
    ],
)
def test_an_address_with_a_password_is_neither_kept_nor_shown(target: str) -> None:
    text = said_of(f"{HEAD}target: {target}\n{GRADERS}")
    assert "s3cret" not in text
    assert "the address holds a user name or a password" in text or "needs a mapping" in text


def test_a_judge_with_a_password_in_its_name_is_neither_kept_nor_shown() -> None:
    judge = "graders:\n  right: {kind: model_judge, prompt: x, model: 'http://me:s3cret@host/v1#m'}\n"
    text = said_of(HEAD + TARGET + judge)
    assert text == (
        "suite.yaml:5:41 graders.right.model: the address holds a user name or a password, "
        "which would be stored and shown; leave them out"
    )


def test_an_at_sign_further_on_is_no_password() -> None:
    target = "target: {kind: http, url: 'http://host/@me?mail=a@b', body: '{{ message }}'}\n"
    Path("suite.yaml").write_text(HEAD + target + GRADERS)
    assert load_suite(Path("suite.yaml")).spec.target is not None
