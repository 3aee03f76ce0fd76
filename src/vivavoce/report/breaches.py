"""How many false statements and broken rules the judges of goals found in a run, besides the goals."""

from __future__ import annotations

from collections.abc import Iterator

from vivavoce.records.run import BREACH_NAMES
from vivavoce.report.best_target import target_names
from vivavoce.report.text import count
from vivavoce.run.summary import Summary
from vivavoce.safe_text import safe


def breach_lines(summary: Summary) -> Iterator[str]:
    """Yield a line for each grader whose judge found false statements or broken rules."""
    several = len(target_names(summary)) > 1
    for grader in summary.graders:
        if grader.breaches:
            name = safe(f"{grader.name} of {grader.target}" if several else grader.name)
            numbers = [count(number, BREACH_NAMES[kind]) for kind, number in grader.breaches.items()]
            yield f"{name}: {', '.join(numbers)}"
