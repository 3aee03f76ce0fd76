"""What a page about a run shows: the verdict and its conditions, the metrics, and the columns of its samples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from vivavoce.exchange.suites import yaml_text
from vivavoce.records.run import Grading, Run
from vivavoce.report.agents import HEADS, agent_rows, agents_line, who_failed
from vivavoce.report.best_target import sentences
from vivavoce.report.corrected import corrected_lines
from vivavoce.report.details import detail_lines, tags_line
from vivavoce.report.finding import finding, gate_of, headline
from vivavoce.report.graded_run import partial_note
from vivavoce.report.html.metrics import conditions, gates_of, metrics, scale_of
from vivavoce.report.html.run_facts import facts
from vivavoce.report.measurements import measured_lines
from vivavoce.report.reasons import breach_lines
from vivavoce.report.sampled import sampled_lines
from vivavoce.report.terminal import PASSED_ADDED, agreement_line
from vivavoce.report.tester import spoiled_lines
from vivavoce.report.unverified import unverified_lines
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe

MAX_SUITE_LINES = 5000
"""Lines of a suite that are shown and compared."""


def head(run: Run, grading: Grading, summary: Summary) -> dict[str, object]:
    """Return the values for the template of a run, without samples and links to other pages."""
    gates = gates_of(grading)
    scale = scale_of(summary, gates)
    running = run.status == "running"
    lines = [safe(one) for one in sentences(summary)]
    lines += [
        *spoiled_lines(summary),
        *unverified_lines(summary),
        *breach_lines(summary),
        *measured_lines(summary),
        *sampled_lines(summary),
        *(agreement_line(one).plain for one in summary.agreement),
    ]
    lines += [*corrected_lines(summary, run.id), *map(safe, detail_lines(summary))]
    lines += [note] if (note := partial_note(run)) else []
    return {
        "run": run,
        "grading": grading,
        "summary": summary,
        "verdict_word": "inconclusive" if summary.stopped and not running else summary.verdict,
        "facts": facts(run, grading, summary),
        "suite_text": safe("\n".join(suite_lines(run, grading))),
        "finding": finding(summary, grading),
        "headline": headline(summary, grading),
        "decides": _decides(summary, grading),
        "conditions": conditions(summary),
        "scale": scale,
        "metrics": metrics(summary, scale, gates, provisional=running),
        "several": len({one.target for one in summary.graders}) > 1,
        "targets": sorted({safe(one.target) for one in summary.graders}),
        "recorded": run.spec.get("driver") == "replay",
        "lines": [*lines, PASSED_ADDED] if grading.passed_added else lines,
        "agents": agent_rows(summary),
        "agent_heads": HEADS,
        "who_failed": who_failed(summary),
        "agents_line": agents_line(summary),
        "tags": [(one.tag, grader) for one in summary.tags for grader in one.graders],
        "tags_line": tags_line(summary),
        "trials": [one for one in summary.graders if one.pass_hat],
        "most_trials": max((max(one.pass_hat) for one in summary.graders if one.pass_hat), default=0),
        "planned": _planned(run),
        "description": run.spec.get("description"),
    }


def _planned(run: Run) -> int | None:
    """Return how many conversations were planned, None where that is not known."""
    found = run.options.get("planned")
    return found if isinstance(found, int) else None


def _decides(summary: Summary, grading: Grading) -> bool:
    """Return whether the headline decides: it failed, or is that of the gate or the reward."""
    first = headline(summary, grading)
    if first is None:
        return False
    failed = any(one.verdict == "fail" and list(one.graders) == [first.name] for one in summary.reasons)
    return failed or first.name in (gate_of(grading).get("metric_key"), "reward")


def suite_lines(run: Run, grading: Grading) -> list[str]:
    """Return the suite of a run as lines of YAML, with what its grading decides by, and without rows inside it."""
    spec: dict[str, Any] = {**run.spec, **grading.spec}
    if isinstance(dataset := spec.get("dataset"), dict):
        spec["dataset"] = {name: value for name, value in cast("dict[str, Any]", dataset).items() if name != "rows"}
    return list(_lines(json.dumps(spec)))


@lru_cache(maxsize=64)
def _lines(spec: str) -> Sequence[str]:
    """Return a suite that is given as JSON as lines of YAML; writing them takes longer than a page may."""
    return yaml_text(json.loads(spec)).splitlines()[:MAX_SUITE_LINES]
