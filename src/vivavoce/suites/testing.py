"""The suite of `viva test`: one goal and one tester, from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vivavoce.suites.load import Suite, described_suite

GRADERS = {
    "goal": {"kind": "function", "function": "goal_achieved"},
    "target": {"kind": "function", "function": "target_passed"},
}
"""The graders of every test: whether the goal was reached, and whether the target passed."""


def testing_suite(
    target: Mapping[str, Any],
    row: Mapping[str, Any],
    tester: Mapping[str, Any],
    metrics: Mapping[str, Any],
    base: Path,
) -> Suite:
    """Return the suite of one test; `metrics` are further graders of the conversation.

    Paths in it start at `base`.

    Raises:
        UsageError: something in it cannot be used.
    """
    data: dict[str, Any] = {
        "name": "test",
        "driver": "penelope",
        "dataset": {"rows": [{"id": "test", **row}]},
        "target": dict(target),
        "tester": dict(tester),
        "graders": {**GRADERS, **metrics},
        "gate": {"kind": "simple", "metric_key": "target", "aggregation": "avg_score", "op": "gte", "value": 1},
    }
    return described_suite(data, base, "test")
