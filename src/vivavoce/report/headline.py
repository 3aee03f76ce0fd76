"""The headline grader of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from vivavoce.records.run import Grading, failing_grader
from vivavoce.run.summary import GraderSummary, Summary


def headline(summary: Summary, grading: Grading) -> GraderSummary | None:
    """Return the grader that a run fails because of, else its main grader; None if nothing was graded."""
    name, target = failing_grader([reason.model_dump() for reason in summary.reasons])
    failing = next((one for one in summary.graders if one.name == name and target in (None, one.target)), None)
    return failing or main_grader(summary, grading)


def main_grader(summary: Summary, grading: Grading) -> GraderSummary | None:
    """Return the grader of the gate, else the reward, else the first; None if nothing was graded.

    A grader that only measures comes after the others.
    """
    for key in (gate_of(grading).get("metric_key"), "reward"):
        if found := next((one for one in summary.graders if one.name == key), None):
            return found
    return next((one for one in summary.graders if one.measured is None), next(iter(summary.graders), None))


def gate_of(grading: Grading) -> Mapping[str, Any]:
    """Return the gate as the suite states it, empty if it has none."""
    gate = grading.spec.get("gate")
    return cast("dict[str, Any]", gate) if isinstance(gate, dict) else {}
