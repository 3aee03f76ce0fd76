"""Runs of a store whose suite or options vivavoce did not write: each command says so in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from command_line import Viva
from vivavoce.records.run import Run, UnreadableRun
from vivavoce.store.database.schema import runs
from vivavoce.store.store import Store
from vivavoce.suites.experiment import reopen_run

STORE = ".vivavoce/vivavoce.db"
SUITE = """\
name: greetings
dataset: {rows: [{id: a, input: hi, ground_truth: hello}]}
target: {kind: function, function: "bot.py:reply"}
graders: {same: {kind: tool, function: contains}}
gate: {kind: simple, metric_key: same, op: gte, value: 0.5}
"""
REQUIRED = ("suite", "dataset", "code")
WRONG_OPTIONS: dict[str, Any] = {
    "suite": 5,
    "dataset": None,
    "code": ["x"],
    "cache": "x",
    "trials": {"a": 1},
    "max_errors": 5,
    "samples": "x",
    "sampling": {"a": 1},
    "fork": 5,
}
WRONG_SPEC: dict[str, Any] = {"name": None, "dataset": 5, "target": 5, "graders": [1], "gate": "x", "driver": "x"}


@pytest.fixture
def run(tmp_path: Path, viva: Viva) -> Run:
    """A finished run."""
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "bot.py").write_text("def reply(messages):\n    return 'hello'\n")
    assert viva("run", "suite.yaml").returncode == 0
    with Store.open(STORE) as store:
        return store.run("latest")


def _store(run: Run, *, status: str = "interrupted", **parts: dict[str, Any]) -> None:
    """Give the stored run another suite or other options."""
    values = {name: json.dumps({**getattr(run, name), **part}) for name, part in parts.items()}
    with Store.open(STORE) as store, store.database.writing() as connection:
        connection.execute(update(runs).values(status=status, **values))


@pytest.mark.parametrize("name", REQUIRED)
def test_a_run_without_an_option_that_every_run_has_is_not_resumed(run: Run, viva: Viva, name: str) -> None:
    _store(
        run.model_copy(update={"options": {key: run.options[key] for key in run.options if key != name}}), options={}
    )
    answer = viva("run", "--resume", run.id)
    sentence = f"run {run.id} cannot be read: its row in the store has a wrong value: options.{name}\n"
    assert (answer.returncode, answer.stderr) == (3, sentence)


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_an_option_with_a_wrong_value_is_named_when_a_run_is_resumed(run: Run, viva: Viva, name: str) -> None:
    _store(run, options={name: WRONG_OPTIONS[name]})
    answer = viva("run", "--resume", run.id)
    assert answer.returncode == 3
    assert f"run {run.id} cannot be read: its row in the store has a wrong value: options.{name}" in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("name", WRONG_SPEC)
@pytest.mark.parametrize("command", ["run --resume", "grade", "fork"])
def test_a_stored_suite_with_a_wrong_value_is_named(run: Run, viva: Viva, name: str, command: str) -> None:
    _store(run, status="interrupted" if command == "run --resume" else "finished", spec={name: WRONG_SPEC[name]})
    arguments = [f"{run.id}/a", "--turn", "1"] if command == "fork" else [run.id]
    answer = viva(*command.split(), *arguments)
    assert (answer.returncode in (2, 3), "bug in vivavoce" in answer.stderr) == (True, False), answer.stderr
    assert name in answer.stderr
    if command != "fork":  # which reads the suite as one that somebody writes, with all its problems
        assert f"run {run.id} cannot be read: its row in the store has a wrong value: spec.{name}" in answer.stderr


def test_the_readable_run_is_resumed(run: Run, viva: Viva) -> None:
    _store(run)
    assert viva("run", "--resume", run.id).returncode == 0


def test_python_gets_an_error_of_the_store(run: Run) -> None:
    _store(run, options={"trials": "x"})
    with Store.open(STORE) as store, pytest.raises(UnreadableRun, match=r"options\.trials"):
        reopen_run(run.id, store=store)
