"""What a page about a run shows: the verdict and its conditions, metrics, targets, histograms, and its origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

from vivavoce.files.plain_yaml import yaml_text
from vivavoce.records.details import dollars, usage_text
from vivavoce.records.run import Grading, Reason, Run, Verdict
from vivavoce.records.score import total
from vivavoce.report.details import (
    HEADS,
    agent_rows,
    agents_line,
    detail_lines,
    measured_lines,
    sampled_lines,
    sentences,
    tags_line,
    target_names,
    who_failed,
)
from vivavoce.report.graded_run import GradedRun, partial_note
from vivavoce.report.html.plots import Range, Scale, range_plot
from vivavoce.report.html.score_notes import State
from vivavoce.report.matrix import Cell, cell_text, figures, matrix_of
from vivavoce.report.terminal import PASSED_ADDED, agreement_line
from vivavoce.report.text import score, span
from vivavoce.report.verdict import (
    breach_lines,
    corrected_lines,
    finding,
    gate_of,
    headline,
    reason_text,
    spoiled_lines,
    unverified_lines,
)
from vivavoce.run.summary import GraderSummary, Summary
from vivavoce.safe_text import safe
from vivavoce.store.browse.listing import Histogram

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
    return [*decisive, *(Condition("part", safe(reason_text(warning)), warning) for warning in summary.warnings)]


def scale_of(summary: Summary, gates: Mapping[str, float]) -> Scale:
    """Return the axis that shows every mean, interval and gate."""
    ends = [end for grader in summary.graders for end in (grader.low, grader.mean) if end is not None]
    return Scale.around([*ends, *gates.values()])


def metrics(summary: Summary, scale: Scale, gates: Mapping[str, float], *, provisional: bool) -> list[Metric]:
    """Return the rows of the table, in the order of the suite."""
    gate_conditions = conditions(summary)
    return [_metric(grader, gate_conditions, scale, gates.get(grader.name), provisional) for grader in summary.graders]


def gates_of(grading: Grading) -> dict[str, float]:
    """Return the lowest mean that the gate of a suite lets pass, for each grader with such a condition."""
    conditions = _simple(gate_of(grading))
    return {
        str(condition["metric_key"]): float(condition["value"])
        for condition in conditions
        if condition.get("aggregation", "avg_score") == "avg_score"
        and condition.get("op", "gte") in ("gte", "gt")
        and isinstance(condition.get("value"), int | float)
        and 0 <= condition["value"] <= 1
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
    grader: GraderSummary, gate_conditions: list[Condition], scale: Scale, gate: float | None, provisional: bool
) -> Metric:
    mine = [condition for condition in gate_conditions if is_about(condition.reason, grader)]
    bad = any(condition.state == "fail" for condition in mine)
    state = "fail" if bad else mine[0].state if mine else None
    plot = range_plot(scale, grader.mean, grader.low, grader.high, bad=bad, provisional=provisional)
    return Metric(grader, state, plot, None if gate is None else scale.at(gate))


SHORT = 10
"""Characters of a commit."""


class Fact(NamedTuple):
    """A word for what it is, and what it is in this run."""

    name: str
    text: str


def facts(run: Run, grading: Grading, summary: Summary) -> list[Fact]:
    """Return what is known; nothing is there for what a run does not record."""
    return [Fact(name, safe(text)) for name, text in _facts(run, grading, summary)]


def judges_of(grading: Grading) -> list[str]:
    """Return the models that the suite names as judges, each once."""
    spec = grading.spec
    graders: Any = spec.get("graders")
    specs = list(cast("dict[str, Any]", graders).values()) if isinstance(graders, dict) else []
    models = [cast("dict[str, Any]", grader).get("model") for grader in specs if isinstance(grader, dict)]
    return list(dict.fromkeys(model for model in (*models, spec.get("judge")) if isinstance(model, str) and model))


def _facts(run: Run, grading: Grading, summary: Summary) -> Iterator[tuple[str, str]]:
    if judges := judges_of(grading):
        yield "judge" if len(judges) == 1 else "judges", ", ".join(judges)
    if trials := max((max(grader.pass_hat) for grader in summary.graders if grader.pass_hat), default=0):
        yield "trials", str(trials)
    if (commit := revision(run)) is not None:
        yield "commit", commit[:SHORT]
    used = total(summary.usage.values())
    if used is not None and any(vars(used).values()):
        yield "used", usage_text(used)
    for latency in summary.latency:
        name = f"a reply of {latency.target}" if len(summary.latency) > 1 else "a reply"
        yield name, f"{latency.p50:.2f} s median, {latency.p95:.2f} s 95th percentile"


def revision(run: Run) -> str | None:
    """Return the commit that was checked out when the run started, None where it is not known."""
    commit = run.options.get("revision")
    return commit if isinstance(commit, str) else None


MAX_SUITE_CHARS = 200_000
"""Characters of keys and texts of a suite that are shown; what is longer ends with an ellipsis."""
MAX_SUITE_LINES = 5000
"""Lines of a suite that are shown and compared."""


def head(run: Run, grading: Grading, summary: Summary) -> dict[str, object]:
    """Return the values for the template of a run, without samples and links to other pages."""
    gates = gates_of(grading)
    scale = scale_of(summary, gates)
    running = run.status == "running"
    lines = [safe(sentence) for sentence in sentences(summary)]
    lines += [
        *spoiled_lines(summary),
        *unverified_lines(summary),
        *breach_lines(summary),
        *measured_lines(summary),
        *sampled_lines(summary),
        *(agreement_line(agreement).plain for agreement in summary.agreement),
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
        "several": len({grader.target for grader in summary.graders}) > 1,
        "targets": sorted({safe(grader.target) for grader in summary.graders}),
        "recorded": run.spec.get("driver") == "replay",
        "lines": [*lines, PASSED_ADDED] if grading.passed_added else lines,
        "agents": agent_rows(summary),
        "agent_heads": HEADS,
        "who_failed": who_failed(summary),
        "agents_line": agents_line(summary),
        "tags": [(tag.tag, grader) for tag in summary.tags for grader in tag.graders],
        "tags_line": tags_line(summary),
        "trials": [grader for grader in summary.graders if grader.pass_hat],
        "most_trials": max((max(grader.pass_hat) for grader in summary.graders if grader.pass_hat), default=0),
        "planned": _planned_count(run),
        "description": run.spec.get("description"),
    }


def _planned_count(run: Run) -> int | None:
    """Return how many conversations were planned, None where that is not known."""
    planned = run.options.get("planned")
    return planned if isinstance(planned, int) else None


def _decides(summary: Summary, grading: Grading) -> bool:
    """Return whether the headline decides: it failed, or is that of the gate or the reward."""
    first = headline(summary, grading)
    if first is None:
        return False
    failed = any(reason.verdict == "fail" and list(reason.graders) == [first.name] for reason in summary.reasons)
    return failed or first.name in (gate_of(grading).get("metric_key"), "reward")


def suite_lines(run: Run, grading: Grading) -> list[str]:
    """Return the suite of a run as lines of YAML, with what its grading decides by, and without rows inside it."""
    spec: dict[str, Any] = {**run.spec, **grading.spec}
    if isinstance(dataset := spec.get("dataset"), dict):
        spec["dataset"] = {name: value for name, value in cast("dict[str, Any]", dataset).items() if name != "rows"}
    return list(_lines(json.dumps(_beginning(spec, _Room()))))


@dataclass(slots=True)
class _Room:
    """How much of a suite is written as YAML; each value takes a line at least."""

    values: int = MAX_SUITE_LINES
    chars: int = MAX_SUITE_CHARS


def _beginning(value: Any, room: _Room) -> Any:
    """Return a JSON value without what comes after the lines that are shown, since writing it takes long."""
    if isinstance(value, dict) and value:
        mapping: dict[str, Any] = {}
        for key, inner in cast("dict[str, Any]", value).items():
            if room.values <= 0:
                break
            mapping[_cut(key, room)] = _beginning(inner, room)
        return mapping
    if isinstance(value, list) and value:
        items: list[Any] = []
        for inner in cast("list[Any]", value):
            if room.values <= 0:
                break
            items.append(_beginning(inner, room))
        return items
    room.values -= 1
    return _cut(value, room) if isinstance(value, str) else cast("object", value)


def _cut(text: str, room: _Room) -> str:
    visible_text = text if len(text) <= room.chars else f"{text[: room.chars]}…"
    room.chars -= min(len(text), room.chars)
    return visible_text


@lru_cache(maxsize=64)
def _lines(spec: str) -> Sequence[str]:
    """Return a suite that is given as JSON as lines of YAML; writing them takes longer than a page may."""
    return yaml_text(json.loads(spec)).splitlines()[:MAX_SUITE_LINES]


SAMPLES = 100
"""Samples in the table, the worst of the run if it has more."""
MAX_CONVERSATIONS = 20_000
"""Conversations of a run whose scores a page reads for the table."""

Link = Callable[[str, str], str]
"""Returns the address of the conversation of a sample with a target, empty for none."""


@dataclass(frozen=True, slots=True)
class LinkedCell:
    """The score of a sample with a target, and the conversation that it is about."""

    text: str
    state: State
    link: str


@dataclass(frozen=True, slots=True)
class ByTarget:
    """The table: its targets, a line for each sample, and the figures below; `note` says what is not in it."""

    grader: str
    heads: list[str]
    lines: list[tuple[str, list[LinkedCell]]]
    figures: list[tuple[str, list[str]]]
    note: str


def by_target(graded: GradedRun, summary: Summary, link: Link) -> ByTarget | None:
    """Return the table, None for a run of a single target or one that is still running."""
    heads = target_names(summary)
    if len(heads) < 2 or graded.run.status == "running":
        return None
    if summary.attempts > MAX_CONVERSATIONS:
        command = f"viva show {safe(graded.run.id)} --table"
        note = f"{summary.attempts:,} conversations are too many for a table here; the worst samples: {command}"
        return ByTarget("", heads, [], [], note)
    matrix = matrix_of(graded, SAMPLES)
    lines = [
        (safe(row.sample), [_link_cell(row.cells.get(name), link(row.sample, name)) for name in heads])
        for row in matrix.rows
    ]
    return ByTarget(matrix.grader, heads, lines, figures(matrix, heads), matrix.left_out)


def _link_cell(cell: Cell | None, link: str) -> LinkedCell:
    if cell is None or not cell.trials:
        state = "measured" if cell and cell.measured else "skip"
        return LinkedCell(cell_text(cell), state, link if cell else "")
    return LinkedCell(cell_text(cell), "error" if cell.errors else "fail" if cell.bad else "pass", link)


WIDTH, HEIGHT = 160, 48
"""Size of the area of the bars, in pixels."""

_NAMES = {"seconds": "Time", "tokens": "Tokens", "cost": "Cost"}


@dataclass(frozen=True, slots=True)
class Bars:
    """A histogram as drawn: `path` has its bars, `label` all of it in words."""

    name: str
    low: str
    high: str
    path: str
    most: int
    label: str


def draw_bars(histograms: Sequence[Histogram], graders: int) -> list[Bars]:
    """Return histograms as drawings; the first `graders` are of scores."""
    return [
        _bars(histogram, is_score=place < graders)
        for place, histogram in enumerate(histograms)
        if any(histogram.counts)
    ]


def _bars(histogram: Histogram, *, is_score: bool) -> Bars:
    kind, most, wide = "score" if is_score else histogram.name, max(histogram.counts), WIDTH / len(histogram.counts)
    name = safe(histogram.name) if is_score else _NAMES[histogram.name]
    edges = [
        _edge_text(histogram.low + (histogram.high - histogram.low) * at / len(histogram.counts), kind)
        for at in range(len(histogram.counts) + 1)
    ]
    path = "".join(
        f"M{at * wide + 1:g} {HEIGHT}v-{max(1.0, HEIGHT * number / most):.1f}h{wide - 2:g}V{HEIGHT}z"
        for at, number in enumerate(histogram.counts)
        if number
    )
    counts = [f"{number:,} from {edges[at]} to {edges[at + 1]}" for at, number in enumerate(histogram.counts) if number]
    return Bars(name, edges[0], edges[-1], path, most, f"{name}: {', '.join(counts)}")


def _edge_text(value: float, kind: str) -> str:
    match kind:
        case "seconds":
            return span(value)
        case "cost":
            return dollars(value)
        case "tokens":
            return f"{value:,.0f}"
        case _:
            return score(value)
