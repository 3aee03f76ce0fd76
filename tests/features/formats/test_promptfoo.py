"""Results of promptfoo become graded conversations, and its configurations suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cli.conftest import Viva
from features.formats.translation import read_values
from vivavoce.conversations.format import Loss
from vivavoce.features.formats.promptfoo import FORMAT, translate

CHAT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When is breakfast?"}]


def result(raw: Any, output: Any, *, passed: bool = True, conversation: str | None = None) -> dict[str, Any]:
    """Return a result as promptfoo 0.121 writes it, without what is not read."""
    grading = {"pass": passed, "componentResults": [{"pass": passed, "score": 1.0, "assertion": {"type": "contains"}}]}
    return {
        "testCase": {"metadata": {"conversationId": conversation} if conversation else {}},
        "testIdx": 3,
        "promptIdx": 0,
        "provider": {"id": "openai:gpt-x", "label": "desk"},
        "prompt": {"raw": raw if isinstance(raw, str) else json.dumps(raw)},
        "response": {"output": output},
        "gradingResult": grading,
        "success": passed,
        "score": 1,
        "latencyMs": 20,
    }


def test_a_result_is_a_conversation_with_verdicts() -> None:
    rows, loss = read_values(FORMAT, [result(CHAT, "At seven."), result("Hi?", {"a": 1}, passed=False)])
    assert rows[0]["messages"] == [*CHAT, {"role": "assistant", "content": "At seven."}]
    assert rows[0]["labels"]["passed"] is True
    assert rows[1]["messages"][1]["content"] == '{"a": 1}'
    assert (rows[1]["id"], rows[1]["labels"]["passed"]) == ("test-3-2", False)
    assert loss.is_lossless


def test_results_of_one_conversation_are_its_turns() -> None:
    handed_on = [*CHAT, {"role": "assistant", "content": "At seven."}, {"role": "user", "content": "And lunch?"}]
    together = [
        result(CHAT, "At seven.", conversation="c"),
        result(handed_on, "At one.", passed=False, conversation="c"),
    ]
    apart = [result("When?", "Now.", conversation="d"), result("Sure?", "Yes.", conversation="d")]
    rows, _ = read_values(FORMAT, [*together, *apart])
    assert [row["id"] for row in rows] == ["c on desk", "d on desk"]
    assert [len(row["messages"]) for row in rows] == [5, 4]
    assert rows[0]["labels"]["passed"] is False


def test_an_error_of_the_target_is_left_out_and_told() -> None:
    rows, loss = read_values(FORMAT, [{**result("x", "y"), "response": {}, "error": "boom"}])
    assert rows == []
    assert "had an error" in loss.entries()[0].what


def test_a_file_of_results_is_told_by_its_content(viva: Viva, tmp_path: Path) -> None:
    results: dict[str, Any] = {"version": 3, "results": [result(CHAT, "At seven.")], "stats": {}}
    (tmp_path / "out.json").write_text(json.dumps({"evalId": "e", "results": results, "config": {}}))
    done = viva("judge", "out.json", "--metrics", "refusal", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "out.json is read as promptfoo results" in done.stderr


CONFIG = """
description: hotel desk
prompts: [file://chat.json]
providers:
  - id: openai:gpt-4.1-mini
    config: {temperature: 0, max_tokens: 50, response_format: x}
  - python:provider.py
defaultTest:
  assert: [{type: not-icontains, value: as an AI}]
tests:
  - vars: {question: When is breakfast?}
    metadata: {conversationId: breakfast}
    assert: [{type: contains, value: Seven, weight: 2}]
  - vars: {question: "And for children?"}
    metadata: {conversationId: breakfast}
    assert: [{type: latency, threshold: 2000}, {type: javascript, value: "output.length < 9"}]
  - description: pool
    vars: {question: [Is there a pool?, Is the pool warm?]}
  - file://more.csv
"""


def test_a_configuration_becomes_a_suite_and_says_what_has_no_translation(viva: Viva, tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    (tmp_path / "chat.json").write_text(json.dumps([CHAT[0], {"role": "user", "content": "{{question}}"}]))
    (tmp_path / "more.csv").write_text("question,__expected\nDo you take dogs?,icontains: dogs\n")
    (tmp_path / "bot.py").write_text("def reply(message):\n    return 'Yes.'\n")
    done = viva("convert", "promptfooconfig.yaml", "suite.yaml", "--report", "loss.json")
    assert done.returncode == 0, done.stderr
    losses = {entry["what"] for entry in json.loads((tmp_path / "loss.json").read_text())["entries"]}
    assert losses == {
        "assertion 'javascript'",
        "'response_format' of a provider",
        "provider 'python:provider.py': write a function reply(message) that calls it, in bot.py",
        "system message: a target of this kind has its own",
    }
    suite = YAML(typ="safe").load((tmp_path / "suite.yaml").read_text())  # pyright: ignore[reportUnknownMemberType]
    rows = {row["id"]: row for row in suite["dataset"]["rows"]}
    assert list(rows) == ["breakfast", "pool", "pool-2", "test-4"]
    assert rows["breakfast"]["input"] == ["When is breakfast?", "And for children?"]
    not_an_ai = {"not_contains": "as an AI"}
    assert rows["breakfast"]["expect"] == [
        [not_an_ai, {"regex": "Seven", "weight": 2}],
        [not_an_ai, {"latency": 2.0}],
    ]
    assert rows["test-4"]["expect"] == [[not_an_ai, {"contains": "dogs"}]]
    assert suite["targets"][0] == {
        "kind": "openai",
        "base_url": "https://api.openai.com/v1",
        "model_handles": ["gpt-4.1-mini"],
        "settings": {"temperature": 0, "max_tokens": 50},
        "system_prompt": "Be kind.",
    }
    valid = viva("validate", "suite.yaml")
    assert valid.returncode == 0, valid.stderr
    assert viva("convert", "promptfooconfig.yaml", "strict.yaml", "--strict").returncode == 2
    assert not (tmp_path / "strict.yaml").exists()


@pytest.mark.parametrize(
    ("assertion", "ours"),
    [
        ({"type": "contains", "value": "a.b"}, {"regex": r"a\.b"}),
        ({"type": "icontains", "value": "{{name}}"}, {"contains": "Ada"}),
        ({"type": "not-contains", "value": "x"}, {"not": {"regex": "x"}}),
        ({"type": "icontains-all", "value": "a, b"}, {"contains": ["a", "b"]}),
        ({"type": "contains-any", "value": ["a", "b"]}, {"any": [{"regex": "a"}, {"regex": "b"}]}),
        ({"type": "starts-with", "value": "Hi"}, {"regex": r"\AHi"}),
        ({"type": "is-json", "value": {"type": "object"}}, {"json_schema": {"type": "object"}}),
        ({"type": "llm-rubric", "value": "is polite"}, {"judged": "is polite"}),
        ({"type": "not-is-refusal"}, {"not": {"metric": "refusal"}}),
        ({"type": "assert-set", "assert": [{"type": "equals", "value": "x"}]}, {"all": [{"equals": "x"}]}),
        ({"type": "regex", "value": "(?<broken"}, None),
        ({"type": "latency"}, None),
        ({"type": "llm-rubric", "value": "file://rubric.txt"}, None),
        ({"type": "similar", "value": "x"}, None),
    ],
)
def test_assertions_are_translated_or_told(assertion: dict[str, Any], ours: dict[str, Any] | None) -> None:
    loss = Loss()
    assert list(translate(assertion, {"name": "Ada"}, loss)) == ([] if ours is None else [ours])
    assert loss.is_lossless == (ours is not None)
