"""Several runs, each compared with the same baseline run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vivavoce.features.compare.cache import Comparisons
from vivavoce.features.compare.choosing import compare_page, several_data
from vivavoce.features.compare.plots import difference, format_signed, scale_of, several_finding
from vivavoce.features.compare.several import Line
from vivavoce.records.run import Grading, Run
from vivavoce.report.comparison.comparison import Comparison
from vivavoce.server.pages.links import run_page
from vivavoce.store.store import Store


def several_values(store: Store, comparisons: Comparisons, names: Sequence[str]) -> dict[str, object]:
    """Return the values for the page; the first of the runs is the baseline.

    Raises:
        UsageError: there is no such run, one is named twice, or one has no target in common with the baseline.
    """
    runs = [store.run(name, whole=True) for name in names]
    first, *others = (store.grading(run.id) for run in runs)
    result = comparisons.several(store, first, others)
    of_letter = dict(result.lettered)
    lines = result.lines
    scale = scale_of([line.grader for line in lines])
    return {
        "section": "compare",
        "found": result,
        "finding": several_finding(result),
        "heads": [_head("A", runs[0], first), *map(_head, of_letter, runs[1:], others)],
        "rows": [
            (line, difference(line.grader, scale, _pair(of_letter[line.letter], line), is_shown=False))
            for line in lines
        ],
        "scale": scale,
        "signed": format_signed,
        "level": f"{100 * result.level:.4g}",
        "changes": [
            (letter, comparison) for letter, comparison in result.lettered if comparison.changes or comparison.notes
        ],
        "named_targets": any(len(comparison.targets) > 1 for comparison in result.comparisons),
        "json_link": several_data(result.run, [run.id for run in runs[1:]]),
        "command": f"viva compare {' '.join(run.id for run in runs)}",
    }


def _pair(comparison: Comparison, line: Line) -> str:
    """Return the address of the comparison of one run with the baseline, at a grader."""
    several = len(comparison.targets) > 1
    target_a, target_b = (line.target.target_a, line.target.target_b) if several else (None, None)
    return compare_page(
        a=comparison.run_a, b=comparison.run_b, target_a=target_a, target_b=target_b, grader=line.grader.name
    )


def _head(letter: str, run: Run, grading: Grading) -> dict[str, Any]:
    return {"letter": letter, "run": run, "grading": grading, "link": run_page(run.id)}
