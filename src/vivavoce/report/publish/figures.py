"""A run as a tracker of experiments keeps it: what it was made with, and its figures by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from vivavoce.records.run import described_targets
from vivavoce.records.score import Usage
from vivavoce.report.best_target import target_names
from vivavoce.report.graded_run import GradedRun
from vivavoce.report.strict_json import strict_json
from vivavoce.run.summary import GraderSummary, Summary

_TARGET = ("kind", "model", "url", "base_url", "function", "agent_id")
_RATES = ("mean", "low", "high", "pass_rate", "pass_low", "pass_high", "raw_pass_rate", "highest_pass_rate")
_COUNTS = ("scored", "errors", "skipped", "samples")


def parameters(graded: GradedRun) -> dict[str, str]:
    """Return what a run was made with: suite, dataset, targets, judges and the fingerprints of its graders."""
    run, spec = graded.run, graded.grading.spec
    known: dict[str, Any] = {
        "suite": run.suite,
        "vivavoce": run.version,
        "driver": run.spec.get("driver"),
        "dataset": _mapping(run.spec.get("dataset")).get("path"),
        "dataset_hash": run.options.get("dataset"),
        "code_hash": run.options.get("code"),
        "trials": run.options.get("trials") or run.spec.get("trials"),
        "partial_of": run.partial_of,
    }
    for target in described_targets(run.spec):
        for name in _TARGET:
            known[f"target/{target.get('name') or target.get('kind')}/{name}"] = target.get(name)
    for name, grader in _mapping(spec.get("graders")).items():
        known[f"grader/{name}/judge"] = _mapping(grader).get("model") or _mapping(grader).get("judge")
        known[f"grader/{name}/fingerprint"] = graded.grading.fingerprints.get(name)
    return {name: _text(value) for name, value in known.items() if value not in (None, "", [])}


def figures(summary: Summary) -> dict[str, float]:
    """Return the figures of a run; with several targets each name begins with the target.

    `said/mean` has its interval in `said/low` and `said/high`, `said/pass_rate` in `said/pass_low` and
    `said/pass_high`. Costs are in US dollars, times in seconds; what is not known is left out.
    """
    return {name: float(value) for name, value in _figures(summary) if value is not None}


def _figures(summary: Summary) -> Iterator[tuple[str, float | None]]:
    several = len(target_names(summary)) > 1
    yield "conversations", summary.attempts
    yield "conversations/failed", summary.failed_attempts
    for one in summary.graders:
        yield from _of_grader(f"{one.target}/{one.name}" if several else one.name, one)
    for latency in summary.latency:
        place = f"{latency.target}/latency" if several else "latency"
        yield f"{place}/p50", latency.p50
        yield f"{place}/p95", latency.p95
    for role, used in summary.usage.items():
        yield from _used(f"usage/{role}", used)


def _of_grader(name: str, one: GraderSummary) -> Iterator[tuple[str, float | None]]:
    for field in (*_RATES, *_COUNTS):
        yield f"{name}/{field}", getattr(one, field)
    if one.measured is not None:
        yield f"{name}/measured/mean", one.measured.mean
        yield f"{name}/measured/min", one.measured.min
        yield f"{name}/measured/max", one.measured.max
    for k in one.pass_at:
        yield f"{name}/pass_at_{k}", one.pass_at[k]
        yield f"{name}/pass_hat_{k}", one.pass_hat.get(k)


def _used(place: str, used: Usage) -> Iterator[tuple[str, float | None]]:
    yield f"{place}/input_tokens", used.input_tokens
    yield f"{place}/output_tokens", used.output_tokens
    yield f"{place}/calls", used.calls
    yield f"{place}/cost", used.cost


def _text(value: object) -> str:
    return value if isinstance(value, str) else strict_json(value)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
