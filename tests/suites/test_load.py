"""Reading suites: mistakes are told with file, line and a next step."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.load import TargetChanges, dump_spec, load_for_check, load_suite

GOOD = """\
name: capitals
dataset: d.jsonl
target:
  kind: function
  function: bot.py:answer
graders:
  right:
    kind: tool
    function: contains
gate:
  kind: simple
  metric_key: right
  value: 0.5
"""


def write_suite(folder: Path, text: str) -> Path:
    path = folder / "suite.yaml"
    path.write_text(text)
    return path


def test_a_suite_is_read(tmp_path: Path) -> None:
    suite = load_suite(write_suite(tmp_path, GOOD))
    assert suite.spec.name == "capitals"
    assert suite.spec.dataset.path == "d.jsonl"
    assert suite.base == tmp_path
    assert suite.era is None


@pytest.mark.parametrize(
    ("old", "new", "expected_text"),
    [
        ("dataset:", "datset:", "2:1 datset: unknown key; did you mean 'dataset'?"),
        (
            "  function: bot.py:answer",
            "  functon: bot.py:answer",
            "5:3 target.functon: unknown key; did you mean 'function'?",
        ),
        (
            "    function: contains",
            "    functon: contains",
            "9:5 graders.right.functon: unknown key; did you mean 'function'?",
        ),
        ("kind: function", "kind: functoin", "4:3 target.kind: no kind 'functoin'; did you mean 'function'?"),
        ("  value: 0.5", "  value: half", "13:3 gate.value: needs a number, got 'half'"),
        ("  value: 0.5", "", "10:1 gate: the key 'value' is missing"),
        ("name: capitals\n", "", "1:1 the key 'name' is missing"),
        (
            "  metric_key: right",
            "  metric_key: right\n  op: above",
            "13:3 gate.op: needs one of gt, gte, lt, lte, eq, got 'above'",
        ),
        ("  right:", "  reward:", "'reward' is the name of the reward of a sample"),
        ("target:\n  kind: function\n  function: bot.py:answer\n", "", "needs a target"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, old: str, new: str, expected_text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(expected_text)) as caught:
        load_suite(write_suite(tmp_path, GOOD.replace(old, new, 1)))
    assert str(caught.value).startswith(str(tmp_path / "suite.yaml"))
    assert "\n" not in str(caught.value).removesuffix("\n") or len(caught.value.problems) > 1


@pytest.mark.parametrize(
    ("name", "what"), [("bot.py", "a Python file"), ("d.JSONL", "a dataset"), ("d.csv", "a dataset")]
)
def test_another_kind_of_file_is_no_suite(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}: is {what}, not a suite; a suite is a YAML file that names it"):
        load_suite(Path(name))


def test_a_mistake_in_a_target_that_was_given_is_not_laid_on_the_suite(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_suite(write_suite(tmp_path, GOOD), [{"kind": "openai", "base_url": "http://localhost/v1"}])
    assert str(caught.value) == "target: the key 'model_handles' is missing"


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    broken = GOOD.replace("name:", "nme:").replace("kind: simple", "kind: simpel")
    with pytest.raises(UsageError) as caught:
        load_suite(write_suite(tmp_path, broken))
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"name: [unclosed", "is not YAML"),
        (b"name: \xff\xfe", "is not UTF-8"),
        (b"- a\n- b\n", "must be a mapping"),
        (b"", "must be a mapping"),
        (b"a: 1\na: 2\n", "is not YAML"),
        (b"x: " + b"a" * 1_100_000, "a suite has at most"),
    ],
)
def test_a_file_that_is_no_suite_is_one_line(tmp_path: Path, raw: bytes, text: str) -> None:
    path = tmp_path / "suite.yaml"
    path.write_bytes(raw)
    with pytest.raises(UsageError, match=text) as caught:
        load_suite(path)
    assert len(caught.value.problems) == 1


def test_a_yaml_bomb_is_refused_quickly(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(UsageError, match="after its aliases are expanded"):
        load_suite(write_suite(tmp_path, "\n".join(lines)))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_suite(tmp_path / "absent.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_suite(tmp_path)


def test_a_key_in_the_suite_is_never_dumped(tmp_path: Path) -> None:
    text = GOOD.replace("kind: function\n  function: bot.py:answer", "kind: letta\n  agent_id: a\n  api_key: sk-secret")
    spec = load_suite(write_suite(tmp_path, text)).spec
    assert "sk-secret" not in spec.model_dump_json()
    assert "sk-secret" not in repr(spec)


def test_a_replay_has_no_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="calls no target"):
        load_suite(write_suite(tmp_path, "driver: replay\n" + GOOD))


@pytest.mark.parametrize(
    "target",
    [
        '{kind: http, url: "http://x/", headers: {X-Token: sk-literal}}',
        '{kind: http, url: "http://x/", headers: {Authorization: "Bearer sk-half-${HOME}"}}',
        '{kind: openai, base_url: "http://x/v1", model_handles: [m], settings: {api_key: sk-literal}}',
    ],
)
def test_a_key_that_would_be_stored_is_refused_and_not_repeated(tmp_path: Path, target: str) -> None:
    old = "target:\n  kind: function\n  function: bot.py:answer\n"
    with pytest.raises(UsageError, match="key, which would be stored") as caught:
        load_suite(write_suite(tmp_path, GOOD.replace(old, f"target: {target}\n")))
    assert "sk-" not in str(caught.value)


ROWS_AND_TESTER = """\
name: led
driver: penelope
dataset:
  rows:
    - {id: one, goal: Return it}
target: {kind: function, function: bot.py:answer}
tester: {model: openai:m, max_turns: 3}
graders:
  goal: {kind: tool, function: goal_achieved}
gate:
  metric_key: goal
  value: 0.5
"""


@pytest.mark.parametrize("key", ["  metric_key: goal\n", ""])
def test_a_suite_may_hold_its_rows_and_its_tester_and_a_gate_needs_no_kind(tmp_path: Path, key: str) -> None:
    spec = load_suite(write_suite(tmp_path, ROWS_AND_TESTER.replace("  metric_key: goal\n", key))).spec
    assert spec.dataset.rows == [{"id": "one", "goal": "Return it"}]
    assert spec.dataset.place == "the rows of the suite"
    assert spec.tester is not None
    assert (spec.tester.max_turns, spec.tester.strategy) == (3, "improvise")
    assert spec.gate is not None
    assert spec.gate.model_dump(include={"kind", "metric_key"}) == {"kind": "simple", "metric_key": "goal"}


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("driver: penelope", "driver: scripted", "a tester is only for driver: penelope"),
        ("driver: penelope\n", "", "a tester is only for driver: penelope"),
        ("driver: penelope", "driver: penelop", "2:1 driver"),
        ("max_turns: 3", "max_turns: 0", "7:27 tester.max_turns"),
        ("max_turns: 3", "max_turn: 3", "7:27 tester.max_turn: unknown key; did you mean 'max_turns'?"),
        ("max_turns: 3", "strategy: pair, graph: {start: a}", "use either a graph or a strategy, not both"),
        ("  rows:", "  path: d.jsonl\n  rows:", "needs either path or rows"),
        ("  rows:\n    - {id: one, goal: Return it}", "  fields: {goal: aim}", "needs either path or rows"),
        ("  value: 0.5", "", "gate: the key 'value' is missing"),
        ("  value: 0.5", "  weights: {goal: 1}\n  value: 0.5", "weights"),
        ("target: {kind: function, function: bot.py:answer}\n", "", "needs a target"),
    ],
)
def test_a_mistake_in_a_suite_with_a_tester_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, text: str
) -> None:
    assert old in ROWS_AND_TESTER
    with pytest.raises(UsageError, match=re.escape(text)) as caught:
        load_suite(write_suite(tmp_path, ROWS_AND_TESTER.replace(old, new, 1)))
    assert str(caught.value).startswith(str(tmp_path / "suite.yaml"))


def test_two_mistakes_in_one_part_are_both_named(tmp_path: Path) -> None:
    text = ROWS_AND_TESTER + "reward: {kind: weighted, weigths: {c: 1}}\n"
    (tmp_path / "suite.yaml").write_text(text)
    suite = load_for_check(tmp_path / "suite.yaml")
    messages = [str(problem) for problem in suite.problems]
    assert any("reward: the key 'weights' is missing" in message for message in messages)
    assert any("reward.weigths: unknown key; did you mean 'weights'?" in message for message in messages)


SUITE = """\
name: s
dataset: {rows: [{input: hi}]}
TARGET
graders: {right: {kind: function, function: contains}}
"""
ALL = TargetChanges("openai/gpt-5", "http://localhost:9999", "sk-new")


def change(folder: Path, target: str, changes: TargetChanges) -> dict[str, Any]:
    (folder / "suite.yaml").write_text(SUITE.replace("TARGET", target))
    suite = load_suite(folder / "suite.yaml", (), changes)
    assert "sk-new" not in str(dump_spec(suite))
    return next(iter(suite.spec.all_targets.values())).model_dump()


@pytest.mark.parametrize(
    "target",
    [
        "target: {kind: letta, agent_id: a, model_handles: [old/model], base_url: 'http://old', api_key: '${OLD}'}",
        "target: {kind: letta_code}",
        "targets: [{kind: letta_code, model_handles: [old/one, old/two]}]",
        "target: {kind: letta_agent, agent_id: a, model_configs: [openai-gpt-4.1]}",
    ],
)
def test_a_letta_target_takes_all_three(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLD", "sk-old")
    changed = change(tmp_path, target, ALL)
    assert (changed["model_handles"], changed["base_url"]) == (["openai/gpt-5"], "http://localhost:9999")
    assert changed["api_key"].get_secret_value() == "sk-new"


def test_what_is_not_given_stays(tmp_path: Path) -> None:
    target = "target: {kind: openai, base_url: 'http://old/v1', model_handles: [a]}"
    changed = change(tmp_path, target, TargetChanges(model_handle="b"))
    assert (changed["model_handles"], changed["base_url"]) == (["b"], "http://old/v1")
    assert not TargetChanges()


@pytest.mark.parametrize(
    ("target", "changes", "message"),
    [
        (
            "target: {kind: function, function: 'bot.py:reply'}",
            TargetChanges(model_handle="b"),
            "--model-handle: a target of kind 'function' has no model_handles",
        ),
        (
            "target: {kind: http, url: 'http://x'}",
            TargetChanges(base_url="http://y"),
            "--base-url: a target of kind 'http' has no base_url",
        ),
        (
            "target: {kind: openai, base_url: 'http://x', model_handles: [a]}",
            TargetChanges(api_key="k"),
            "--api-key: a target of kind 'openai' has no api_key; set the environment variable",
        ),
    ],
)
def test_a_target_without_the_field_is_an_error(
    tmp_path: Path, target: str, changes: TargetChanges, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        change(tmp_path, target, changes)
