"""A gate that holds whatever the scores are is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from vivavoce.errors import UsageError
from vivavoce.suites.experiment import run_suite

SUITE = """\
name: capitals
dataset: {rows: [{id: a, input: hello, ground_truth: hello}]}
target: {kind: function, function: "bot.py:reply"}
graders: {right: {kind: function, function: contains}}
"""


@pytest.fixture(autouse=True)
def bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bot.py").write_text("def reply(message):\n    return message\n")


def _run(gate: str) -> object:
    Path("suite.yaml").write_text(f"{SUITE}gate: {{{gate}}}\n")
    return run_suite("suite.yaml", store="kept.db")


@pytest.mark.parametrize(
    "gate",
    [
        "kind: simple, metric_key: right, value: 0",
        "kind: simple, metric_key: right, op: lte, value: 1",
        "kind: simple, metric_key: right, aggregation: accuracy, value: 0",
        "kind: simple, metric_key: right, aggregation: accuracy, op: lte, value: 100",
        "kind: weighted_average, weights: {right: 1}, value: 0",
        "kind: logical, operator: and, conditions: [{metric_key: right, value: 0.5}, {metric_key: right, value: 0}]",
    ],
)
def test_a_gate_that_cannot_fail_is_refused(gate: str) -> None:
    with pytest.raises(UsageError, match="so this gate cannot fail"):
        _run(gate)


@pytest.mark.parametrize(
    "gate",
    [
        "kind: simple, metric_key: right, op: eq, value: 1",
        "kind: simple, metric_key: right, op: gt, value: 0",
        "kind: simple, metric_key: right, value: 0, min_scored: 1",
        "kind: simple, metric_key: right, value: 0, max_unverified: 0",
        "kind: logical, operator: and, max_unverified: 0, conditions: [{metric_key: right, value: 0}]",
    ],
)
def test_a_gate_that_can_fail_runs(gate: str) -> None:
    assert _run(gate)
