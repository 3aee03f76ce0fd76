"""A comparison of two runs as tables: its graders, and the samples that changed."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.report.comparison import Comparison, Flip, GraderComparison, TargetComparison
from vivavoce.samples.table import Table, table_of

_TARGETS = {"run_a": "string", "run_b": "string", "target_a": "string", "target_b": "string", "grader": "string"}
_NUMBERS = ("mean_a", "mean_b", "difference", "low", "high", "p_value", "sign_p_value")
_COUNTS = ("wins", "losses", "ties", "passed")
_GRADERS = {
    **_TARGETS,
    "n": "int32",
    **dict.fromkeys(_NUMBERS, "double"),
    **dict.fromkeys(_COUNTS, "int32"),
    **dict.fromkeys(("errors_a", "errors_b", "skipped_a", "skipped_b"), "int32"),
    "same_fingerprint": "bool",
    "note": "string",
    "measured_a": "double",
    "measured_b": "double",
}
_CHANGES = {
    **_TARGETS,
    "change": "string",
    "sample_a": "string",
    "sample_b": "string",
    "score_a": "double",
    "score_b": "double",
    "why": "string",
}


def comparison_table(found: Comparison, name: str) -> Table:
    """Return a table of a comparison: `graders` or `changes`."""
    make, types = (_grader, _GRADERS) if name == "graders" else (_changes, _CHANGES)
    rows = (
        {**_runs(found, target), "grader": one.name, **row}
        for target in found.targets
        for one in target.graders
        for row in make(one)
    )
    return table_of(rows, types)


def _runs(found: Comparison, target: TargetComparison) -> dict[str, object]:
    runs = {"run_a": found.run_a, "run_b": found.run_b}
    return {**runs, "target_a": target.target_a, "target_b": target.target_b}


def _grader(one: GraderComparison) -> Iterator[dict[str, object]]:
    yield {
        **one.model_dump(include={"n", *_NUMBERS, *_COUNTS, "same_fingerprint", "note"}),
        "errors_a": one.a.errors,
        "errors_b": one.b.errors,
        "skipped_a": one.a.skipped,
        "skipped_b": one.b.skipped,
        "measured_a": one.measured and one.measured.mean_a,
        "measured_b": one.measured and one.measured.mean_b,
    }


def _changes(one: GraderComparison) -> Iterator[dict[str, object]]:
    for change, flips in (("worsened", one.worsened), ("improved", one.improved)):
        yield from ({"change": change, **_flip(flip)} for flip in flips)
    for sample in one.broke:
        yield {"change": "broke", "sample_a": sample}
    for sample in one.fixed:
        yield {"change": "fixed", "sample_b": sample}


def _flip(flip: Flip) -> dict[str, object]:
    return {**flip.model_dump(), "why": flip.why or None}
