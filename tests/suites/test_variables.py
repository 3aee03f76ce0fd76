"""Variables of the environment in a suite: read with it, typed as its keys are, and stored as they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.records.run import Run
from vivavoce.suites.load import Suite, dump_spec, load_suite, stored_suite
from vivavoce.suites.target_spec import FunctionTargetSpec, OpenAITargetSpec

SUITE = """\
name: "on ${STAGE:-staging}"
dataset: ${ROWS}/d.jsonl
target: {kind: function, function: "bot.py:answer", name: "${BOT:-bot}"}
graders:
  kind_words: {kind: model_judge, prompt: "Is ${this} kind?", model: "openai:${JUDGE}"}
gate: {kind: simple, metric_key: kind_words, value: "${LEAST:-0.5}"}
trials: ${TRIALS}
"""


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": "rows", "JUDGE": "gpt-4.1-mini", "TRIALS": "3"}.items():
        monkeypatch.setenv(name, value)
    for name in ("STAGE", "BOT", "LEAST", "this"):
        monkeypatch.delenv(name, raising=False)


def write_suite(folder: Path, text: str = SUITE) -> Suite:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml")


@pytest.mark.usefixtures("environment")
def test_variables_stand_in_any_value_and_become_what_the_key_takes(tmp_path: Path) -> None:
    spec = write_suite(tmp_path).spec
    assert (spec.name, spec.dataset.path, spec.trials) == ("on staging", "rows/d.jsonl", 3)
    assert isinstance(spec.target, FunctionTargetSpec)
    assert spec.target.name == "bot"
    grader = spec.graders["kind_words"].model_dump()
    assert (grader["model"], grader["prompt"]) == ("openai:gpt-4.1-mini", "Is ${this} kind?")
    assert spec.gate is not None
    assert spec.gate.model_dump()["value"] == 0.5


@pytest.mark.usefixtures("environment")
def test_what_is_stored_has_the_variables_and_not_their_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_suite(tmp_path)
    stored = dump_spec(suite)
    assert stored["name"] == "on ${STAGE:-staging}"
    assert stored["dataset"]["path"] == "${ROWS}/d.jsonl"
    assert stored["trials"] == "${TRIALS}"
    assert stored["graders"]["kind_words"]["model"] == "openai:${JUDGE}"
    assert stored["gate"]["value"] == "${LEAST:-0.5}"
    run = Run(id="r", suite="s", spec=stored, base=str(tmp_path), options={"suite": "suite.yaml"}, started_at=0)
    assert stored_suite(run).spec == suite.spec
    assert dump_spec(stored_suite(run)) == stored
    monkeypatch.setenv("TRIALS", "4")
    assert stored_suite(run).spec.trials == 4


@pytest.mark.usefixtures("environment")
def test_two_dollars_are_the_text_itself(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, SUITE.replace("on ${STAGE:-staging}", "costs $${TRIALS}"))
    assert suite.spec.name == "costs ${TRIALS}"
    assert dump_spec(suite)["name"] == "costs $${TRIALS}"


def test_every_variable_that_is_not_set_is_named_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS", "JUDGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIALS", " ")
    with pytest.raises(UsageError) as raised:
        write_suite(tmp_path)
    texts = [str(problem).removeprefix(f"{tmp_path}/") for problem in raised.value.problems]
    assert texts == [
        "suite.yaml:2:1 dataset: the environment variable ROWS is not set; ${ROWS:-…} gives a default; "
        "write $${ROWS} for literal text",
        "suite.yaml:5:63 graders.kind_words.model: the environment variable JUDGE is not set; "
        "${JUDGE:-…} gives a default; write $${JUDGE} for literal text",
        "suite.yaml:7:1 trials: the environment variable TRIALS is not set; ${TRIALS:-…} gives a default; "
        "write $${TRIALS} for literal text",
    ]


@pytest.mark.usefixtures("environment")
def test_a_value_that_does_not_fit_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIALS", "hunter2-and-more")
    with pytest.raises(UsageError, match=r"trials: needs a whole number, got '\$\{TRIALS\}'") as raised:
        write_suite(tmp_path)
    assert "hunter2" not in str(raised.value)


@pytest.mark.usefixtures("environment")
def test_files_of_handlers_have_variables_and_what_tools_say_has_none(tmp_path: Path) -> None:
    suite = write_suite(
        tmp_path,
        """\
name: tools
dataset: {rows: [{id: a, input: hello, expect: {contains: x}}]}
target:
  kind: openai
  base_url: http://localhost:1/v1
  model_handles: [m]
  handlers:
    a: "${ROWS}/tools.py:a"
    b: {function: "${ROWS}/tools.py:b", timeout: "${TRIALS}"}
    c: {recordings: "${ROWS}/calls.jsonl"}
    d: {result: "${ROWS}"}
    e: [{result: "${ROWS}"}]
""",
    )
    assert isinstance(suite.spec.target, OpenAITargetSpec)
    texts_by_name = {name: json.dumps(handler) for name, handler in suite.spec.target.model_dump()["handlers"].items()}
    assert [name for name, text in texts_by_name.items() if "rows/" in text] == ["a", "b", "c"]
    assert '"timeout": 3.0' in texts_by_name["b"]
    assert [name for name, text in texts_by_name.items() if "${ROWS}" in text] == ["d", "e"]
    assert dump_spec(suite)["target"]["handlers"]["c"] == {"recordings": "${ROWS}/calls.jsonl"}
