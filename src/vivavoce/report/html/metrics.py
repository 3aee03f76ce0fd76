"""The metrics of a run: each with its mean and interval on one axis, its gate, and how many scores there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from vivavoce.records.run import Grading, Reason, Verdict
from vivavoce.report.finding import gate_of
from vivavoce.report.html.plots import Range, Scale, range_plot
from vivavoce.report.html.score_notes import State
from vivavoce.report.reasons import reason_text
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe

_STATES: Mapping[Verdict, State] = {"pass": "pass", "fail": "fail", "inconclusive": "error"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the verdict, and whether it is met; the state `part` is a warning."""

    state: State
    text: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table; `gate` is the position of the gate in percent of the axis, None if there is none."""

    grader: GraderSummary
    state: State | None
    plot: Range | None
    gate: float | None


def conditions(summary: Summary) -> list[Condition]:
    """Return the conditions of the verdict, a line for each reason, then for each warning."""
    decisive = [Condition(_STATES[reason.verdict], safe(reason_text(reason)), reason) for reason in summary.reasons]
    return [*decisive, *(Condition("part", safe(reason_text(one)), one) for one in summary.warnings)]


def scale_of(summary: Summary, gates: Mapping[str, float]) -> Scale:
    """Return the axis that shows every mean, interval and gate."""
    ends = [end for one in summary.graders for end in (one.low, one.mean) if end is not None]
    return Scale.around([*ends, *gates.values()])


def metrics(summary: Summary, scale: Scale, gates: Mapping[str, float], *, provisional: bool) -> list[Metric]:
    """Return the rows of the table, in the order of the suite."""
    gate_conditions = conditions(summary)
    return [_metric(one, gate_conditions, scale, gates.get(one.name), provisional) for one in summary.graders]


def gates_of(grading: Grading) -> dict[str, float]:
    """Return the lowest mean that the gate of a suite lets pass, for each grader with such a condition."""
    found = _simple(gate_of(grading))
    return {
        str(one["metric_key"]): float(one["value"])
        for one in found
        if one.get("aggregation", "avg_score") == "avg_score"
        and one.get("op", "gte") in ("gte", "gt")
        and isinstance(one.get("value"), int | float)
        and 0 <= one["value"] <= 1
    }


def is_about(reason: Reason, grader: GraderSummary) -> bool:
    """Return whether a reason is about one grader alone, for the target of its summary."""
    return list(reason.graders) == [grader.name] and reason.target in (None, grader.target)


def _simple(gate: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if "metric_key" in gate:
        yield gate
    for inner in cast("list[Any]", gate.get("conditions") or []):
        if isinstance(inner, dict):
            yield from _simple(cast("dict[str, Any]", inner))


def _metric(
    one: GraderSummary, gate_conditions: list[Condition], scale: Scale, gate: float | None, provisional: bool
) -> Metric:
    mine = [found for found in gate_conditions if is_about(found.reason, one)]
    bad = any(found.state == "fail" for found in mine)
    state = "fail" if bad else mine[0].state if mine else None
    plot = range_plot(scale, one.mean, one.low, one.high, bad=bad, provisional=provisional)
    return Metric(one, state, plot, None if gate is None else scale.at(gate))
